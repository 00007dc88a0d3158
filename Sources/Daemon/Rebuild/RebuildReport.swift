package import Core

/// What a rebuild is asked for.
package struct RebuildOptions: Sendable {
    /// What becomes of an upload of which nobody can tell whether it was sent.
    package enum Undecided: String, Sendable, CaseIterable {
        /// It waits for a person.
        case hold
        case send
        /// It counts as sent; its source is kept.
        case assumeSent = "assume-sent"
    }
    package var undecided = Undecided.hold
    /// Asks no destination.
    package var isOffline = false
    /// Shows what it would do, and changes nothing.
    package var isTrial = false
    /// Also when the database is well, or a folder is away.
    package var isForced = false

    package init() {}
}

/// Why a rebuild was not begun.
package enum RebuildRefusal: Error, Sendable, CustomStringConvertible {
    case isWell(FilePath)
    case folderAway(String, FilePath, SystemErrorText)

    /// The kernel's words.
    package typealias SystemErrorText = String

    package var description: String {
        switch self {
        case .isWell(let path): "the database \(path.display) is well: there is nothing to rebuild"
        case .folderAway(let name, let path, let reason):
            "the folder `\(name)` cannot be read (\(reason)): \(path.display). What was sent from it would be taken for "
                + "new when it is there again"
        }
    }

    package var remedy: String {
        switch self {
        case .isWell: "`sluice run` starts with it. --force makes a new one all the same, and keeps this one beside it."
        case .folderAway: "Put the right one there, or give --force to do without it."
        }
    }
}

/// What a rebuild found and did. The counts are uploads, but for the first three.
package struct RebuildReport: Codable, Sendable, Hashable {
    /// Nothing was changed.
    package var trial = false
    /// An earlier rebuild was complete but for its last renames; only these were done.
    package var finishedEarlier = false
    /// What was wrong with the old database.
    package var problem = ""
    /// Where the old database is now; the name of the file.
    package var setAside: String?
    /// Rows of the old database that could be read and count.
    package var salvaged = 0
    /// Files in the folders, and their bytes.
    package var files = 0
    package var bytes: Int64 = 0
    /// Whole copies in the staging folder that could be placed.
    package var copies = 0
    /// By destination.
    package var held: [String: Int] = [:]
    package var toSend: [String: Int] = [:]
    package var undecided: [String: Int] = [:]
    package var assumed: [String: Int] = [:]
    /// Why a destination could not tell, by its name.
    package var reasons: [String: String] = [:]
    /// Copies that belong to no file that is known: where they are now, escaped.
    package var unmatched: [String] = []
    /// Sources that a release had caught: they have their names again.
    package var givenBack: [String] = []
    /// What could not be looked at, or needs a person's eye.
    package var troubles: [String] = []

    package init() {}
}
