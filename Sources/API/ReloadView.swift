/// The result of a reload, as in the API.
package struct ReloadView: Codable, Sendable, Hashable {
    /// Whether the new configuration is in force. If not, the old one still is, and nothing was changed.
    package var applied: Bool
    /// The differences; empty when the configuration is the same as before.
    package var changes: [ChangeView]
    /// Every error in the new configuration.
    package var errors: [ProblemView]
    package var warnings: [ProblemView]

    package init(
        applied: Bool, changes: [ChangeView] = [], errors: [ProblemView] = [], warnings: [ProblemView] = []
    ) {
        self.applied = applied
        self.changes = changes
        self.errors = errors
        self.warnings = warnings
    }
}

package struct ChangeView: Codable, Sendable, Hashable {
    /// `folder`, `destination`, or a section of the file.
    package var what: String
    package var name: String?
    /// `added`, `removed`, `changed`.
    package var change: String
    /// The keys with new values.
    package var keys: [String]

    package init(what: String, name: String?, change: String, keys: [String]) {
        self.what = what
        self.name = name
        self.change = change
        self.keys = keys
    }

    /// `folder cam added`, `destination nas changed (token, url)`.
    package var words: String {
        "\(what)\(name.map { " " + $0 } ?? "") \(change)" + (keys.isEmpty ? "" : " (\(keys.joined(separator: ", ")))")
    }
}

/// An error in a configuration, or a warning.
package struct ProblemView: Codable, Sendable, Hashable {
    /// `FILE:LINE:COLUMN`, as editors read it, or `FILE`.
    package var place: String
    /// Like `folders[0].path`; empty when it concerns no key.
    package var key: String
    package var text: String
    /// The line with a caret under the place; secrets are hidden.
    package var excerpt: String?

    package init(place: String, key: String, text: String, excerpt: String? = nil) {
        self.place = place
        self.key = key
        self.text = text
        self.excerpt = excerpt
    }

}
