package import Core
internal import Linux

/// Thrown when the database cannot be used: damaged, not writable, or of a newer version.
package struct UnusableStateError: Error, Sendable, CustomStringConvertible {
    package let database: FilePath
    package let error: StoreError

    package var description: String {
        let verb = error.isCorrupt ? "is damaged" : "cannot be used"
        return "the database \(database.display) \(verb): \(error.message)"
    }

    package init(database: FilePath, error: StoreError) {
        self.database = database
        self.error = error
    }

    /// Whether the only cause is missing space on its disk.
    package var isShortOfSpace: Bool { error.isShortOfSpace(on: database.parent) }

    /// Advice for a person.
    package var remedy: String? {
        // The message is enough: a newer program wrote the database.
        if error.code == Schema.tooNew { return nil }
        if error.isCorrupt {
            return "Nothing was changed. Restore the state folder from a backup, or run `sluice "
                + "rebuild`: it makes a new database from the folders, the staging folder and what the destinations "
                + "hold, and sends nothing again that they can name. `sluice rebuild --dry-run` shows what it would do."
        }
        if isShortOfSpace {
            return "Make room on the disk of \(database.parent.display)."
        }
        if error.isReadOnly { return "Let the daemon's user write \(database.parent.display) and the files in it." }
        if let limit = Machine.fileSizeLimit, limit < Store.neededFileSize {
            return
                "No file of this process may be larger than \(shownBytes(Int64(clamping: limit))) (`ulimit -f`, LimitFSIZE= of the "
                + "unit), and the database needs more: raise it."
        }
        return "The state folder has to be on a local disk that works."
    }
}

extension StoreError {
    /// Whether the only cause is missing space on the disk of the state.
    package func isShortOfSpace(on folder: FilePath) -> Bool {
        if isFull || isKernelOutOfSpace { return true }
        // A disk that does not report its space may be the cause itself.
        guard let space = try? Space(at: folder) else { return false }
        // SQLite reports an I/O error when its log files do not fit, and cannot open a file when no name (inode) is
        // left.
        return isTransient && space.free < Store.neededSpace || isReadOnly && space.filesFree == 0
    }
}
