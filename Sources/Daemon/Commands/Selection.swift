/// What `pause`, `resume`, `cancel`, `retry` and `remove` are about.
package struct Selection: Codable, Sendable, Hashable {
    /// Ids, unique prefixes of at least 6 characters, or keys.
    package var ids: [String]
    package var all: Bool
    package var folder: String?
    package var destination: String?
    /// Seconds; for `pause`.
    package var duration: Int64?
    /// For `pause`: what is on its way arrives.
    package var afterPart: Bool

    package init(
        ids: [String] = [], all: Bool = false, folder: String? = nil, destination: String? = nil,
        duration: Int64? = nil, afterPart: Bool = false
    ) {
        self.ids = ids
        self.all = all
        self.folder = folder
        self.destination = destination
        self.duration = duration
        self.afterPart = afterPart
    }
}
