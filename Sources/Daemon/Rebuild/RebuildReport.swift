package import Core

/// The options of a rebuild.
package struct RebuildOptions: Sendable {
    /// The treatment of an upload for which it is unknown whether it was sent.
    package enum Undecided: String, Sendable, CaseIterable {
        /// It becomes a failed upload, which a person retries or cancels.
        case fail
        case send
        /// It counts as sent; its source is kept.
        case assumeSent = "assume-sent"
    }
    package var undecided = Undecided.fail
    /// Whether no destination is contacted.
    package var isOffline = false
    /// Whether it only shows the result, and changes nothing.
    package var isTrial = false
    /// Whether it runs even if the database is intact, or a folder is absent.
    package var isForced = false

    package init() {}
}

/// The reason why a rebuild was not begun.
package enum RebuildError: Error, Sendable, CustomStringConvertible {
    case isWell(FilePath)
    case folderAway(String, FilePath, SystemErrorText)

    /// The kernel's words.
    package typealias SystemErrorText = String

    package var description: String {
        switch self {
        case .isWell(let path): "the database \(path.display) is intact: no rebuild is needed"
        case .folderAway(let name, let path, let reason):
            "cannot read the folder `\(name)` (\(reason)): \(path.display). Files that were uploaded from it would count as "
                + "new when it is back"
        }
    }

    package var remedy: String {
        switch self {
        case .isWell: "`sluice run` starts with it. --force creates a new one anyway, and keeps this one beside it."
        case .folderAway: "Mount or restore it, or give --force to continue without it."
        }
    }
}

/// The findings and results of a rebuild. The counts are uploads, except for the first three.
package struct RebuildReport: Codable, Sendable, Hashable {
    /// Whether nothing was changed.
    package var trial = false
    /// Whether an earlier rebuild was complete except for its last renames, and only these were done.
    package var finishedEarlier = false
    /// The problem of the old database.
    package var problem = ""
    /// The present file name of the old database.
    package var setAside: String?
    /// Rows of the old database that could be read and count.
    package var salvaged = 0
    /// Files in the folders, and their bytes.
    package var files = 0
    package var bytes: Int64 = 0
    /// Complete copies in the staging folder that could be assigned.
    package var copies = 0
    /// By destination.
    package var held: [String: Int] = [:]
    package var toSend: [String: Int] = [:]
    package var undecided: [String: Int] = [:]
    package var assumed: [String: Int] = [:]
    /// Why a destination could not answer, by its name.
    package var reasons: [String: String] = [:]
    /// Copies that belong to no known file: their present paths, escaped.
    package var unmatched: [String] = []
    /// Sources that a release had caught: they have their names again.
    package var givenBack: [String] = []
    /// Places that could not be inspected, or need a person's attention.
    package var troubles: [String] = []

    package init() {}
}
