/// What a daemon that ran once leaves behind, for whoever started it.
package struct OnceView: Codable, Sendable, Hashable {
    /// A file that has not settled.
    package struct Unsettled: Codable, Sendable, Hashable {
        package var folder: String
        package var path: String
        /// Bytes at the last look.
        package var size: Int64
        package var reason: String
        /// It is younger than its folder's `min_age`.
        package var isYoung: Bool

        enum CodingKeys: String, CodingKey {
            case folder, path, size, reason
            case isYoung = "young"
        }
    }

    /// A source that is verified at every destination, and still stands.
    package struct Unreleased: Codable, Sendable, Hashable {
        package var path: String
        package var reason: String
    }

    /// Nothing is left that this run was to take: status 0. Else 75.
    package var done: Bool
    /// Uploads that this run completed.
    package var completed: Int
    /// Uploads that wait, and files that have not settled and are old enough.
    package var waiting: Int
    /// Files younger than their folder's `min_age`, for a later run.
    package var young: Int
    package var failed: Int
    /// At most ``most`` of those that wait or failed, the failed ones first.
    package var uploads: [UploadView]
    package var settling: [Unsettled]
    package var unreleased: [Unreleased]
    /// Folders with verified sources that stay, since it cannot be known whether they are open for writing, each with what would
    /// change that.
    package var kept: [String]
    /// Folders that could not be scanned.
    package var absent: [FolderView]
    /// What stands in the way of everybody.
    package var troubles: [String]

    /// Of each list, at most so many are named.
    package static let most = 20

    package init(completed: Int) {
        self.completed = completed
        done = true
        (waiting, young, failed) = (0, 0, 0)
        (uploads, settling, unreleased, kept, absent, troubles) = ([], [], [], [], [], [])
    }
}
