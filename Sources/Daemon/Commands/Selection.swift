/// The uploads that `pause`, `resume`, `cancel`, `retry` and `remove` apply to.
package struct Selection: Codable, Sendable, Hashable {
    /// Ids, unique prefixes of at least 6 characters, or keys.
    package var ids: [String]
    package var all: Bool
    package var folder: String?
    package var destination: String?
    /// In seconds; for `pause`.
    package var duration: Int64?
    /// For `pause`: whether the parts in flight may arrive.
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
