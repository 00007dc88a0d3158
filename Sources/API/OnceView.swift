/// The result of `run --once`, for the program that started it.
package struct OnceView: Codable, Sendable, Hashable {
    /// A file that has not settled.
    package struct Unsettled: Codable, Sendable, Hashable {
        package var folder: String
        package var path: String
        /// In bytes, at the last inspection.
        package var size: Int64
        package var reason: String
        /// Whether it is younger than its folder's `min_age`.
        package var isYoung: Bool

        package init(folder: String, path: String, size: Int64, reason: String, isYoung: Bool) {
            self.folder = folder
            self.path = path
            self.size = size
            self.reason = reason
            self.isYoung = isYoung
        }

        enum CodingKeys: String, CodingKey {
            case folder, path, size, reason
            case isYoung = "young"
        }
    }

    /// A source that is verified at every destination and still exists.
    package struct Unreleased: Codable, Sendable, Hashable {
        package var path: String
        package var reason: String

        package init(path: String, reason: String) {
            self.path = path
            self.reason = reason
        }
    }

    /// Whether no work of this run is left: status 0. Else 75.
    package var done: Bool
    /// Uploads that this run completed.
    package var completed: Int
    /// Uploads that wait, and files that have not settled and are old enough.
    package var waiting: Int
    /// Files younger than their folder's `min_age`, for a later run.
    package var young: Int
    package var failed: Int
    /// At most ``maxListed`` of the waiting and failed uploads, the failed ones first.
    package var uploads: [UploadView]
    package var settling: [Unsettled]
    package var unreleased: [Unreleased]
    /// Folders with verified sources that stay, since it is unknown whether they are open for writing, each with the
    /// change that would end that.
    package var kept: [String]
    /// Folders that could not be scanned.
    package var absent: [FolderView]
    /// Folders whose path is a pattern, and of which no card is mounted.
    package var withoutCard: [String]
    /// Obstacles that concern more than one upload.
    package var troubles: [String]

    /// The most entries named in each list.
    package static let maxListed = 20

    package init(completed: Int) {
        self.completed = completed
        done = true
        (waiting, young, failed) = (0, 0, 0)
        (uploads, settling, unreleased, kept, absent, withoutCard, troubles) = ([], [], [], [], [], [], [])
    }
}
