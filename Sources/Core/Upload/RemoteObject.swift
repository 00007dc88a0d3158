/// The remote's verified object for a finished upload.
package struct RemoteObject: Hashable, Sendable, Codable {
    /// The remote's own name for it, if there is one that is no secret.
    package var id: String?
    /// The address where a person finds it; no secret. `nil` when the address itself is a capability.
    package var url: String?
    /// How it was verified: `offset`, `digest`, `checksum` …
    package var verifiedBy: String
    /// Harmless problems on the way, for the person.
    package var warnings: [String]

    package init(id: String?, url: String?, verifiedBy: String, warnings: [String] = []) {
        self.id = id
        self.url = url
        self.verifiedBy = verifiedBy
        self.warnings = warnings
    }
}
