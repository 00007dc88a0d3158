internal import Config
internal import Core
internal import Linux
internal import Synchronization

/// The files that `sluice init` makes: all of them, or none.
final class SetupFiles: Sendable {
    /// The configuration.
    let path: FilePath
    /// The group that may read them; `nil` for files of this user alone.
    let group: UInt32?
    private let state = Mutex(State())

    private struct State {
        /// What is to be removed when a later step fails, the last first.
        var made: [(path: FilePath, isFolder: Bool)] = []
        var isPublished = false

        /// The error that led here is the one to report.
        mutating func undo() {
            for one in made.reversed() {
                if one.isFolder { try? Files.removeFolder(one.path) } else { try? Files.removeIfPresent(one.path) }
            }
            made = []
        }
    }

    /// - Parameter group: The service's group; by default `sluice`.
    init(_ path: FilePath, group: UInt32? = nil) {
        self.path = path
        self.group = UserDatabase.user == 0 ? group ?? UserDatabase.group(named: "sluice") : nil
    }

    /// Makes the folder of the configuration and its parents.
    func makeFolder(_ folder: FilePath) throws {
        try state.withLock { state in
            var missing: [FilePath] = []
            var next = folder
            while try FileStatus.ifPresent(at: next) == nil, !next.parent.isEmpty, next.parent != next {
                missing.append(next)
                next = next.parent
            }
            // Also what exists when a later one of them cannot be made.
            state.made += missing.reversed().map { ($0, true) }
            try Files.makeFolders(folder, mode: group == nil ? 0o700 : 0o750, durably: true)
            guard let group, missing.contains(folder) else { return }
            try Descriptor.open(folder, for: .folder).setGroup(group, named: folder)
        }
    }

    /// Writes a new file durably, 0640 for the service's group or 0600 for this user.
    func write(_ file: FilePath, _ content: [UInt8]) throws {
        try state.withLock { state in
            let descriptor = try Descriptor.open(file, for: .creating)
            state.made.append((file, false))
            if let group {
                try descriptor.setGroup(group, named: file)
                try descriptor.setMode(0o640, named: file)
            }
            try descriptor.write(content, named: file)
            try descriptor.sync(named: file)
            try descriptor.close(named: file)
        }
    }

    /// Gives the configuration its name. A file that has it already stays.
    func publish(_ draft: FilePath) throws {
        try state.withLock { state in
            try Files.renameNoReplace(draft, to: path)
            // Until the name is on disk, a failure removes it with the rest.
            state.made = state.made.map { $0.path == draft ? (path, $0.isFolder) : $0 }
            try Files.syncFolder(path.parent)
            state.isPublished = true
        }
    }

    /// Removes what was made.
    func undo() { state.withLock { $0.undo() } }

    /// - Parameter error: Why a step before the last failed; what was made is removed.
    func explained(_ error: any Error) -> any Error {
        if error is Console.ClosedError {
            return CommandError(
                .failed, "the output cannot be written, and nothing was set up",
                remedy: "Run `sluice init` again with an output that stays open.")
        }
        guard let error = error as? SystemError else { return error }
        if error.isDenied || error.isReadOnly {
            return CommandError(
                .notNow, "\(error.subject): \(error.reason)",
                remedy: "Nothing was written. Run it as root: `sudo sluice init`, or name another file with "
                    + "--config FILE.")
        }
        if error.isFull {
            return CommandError(
                .notNow, "\(path.parent.display) has no space for the configuration: \(error.reason)",
                remedy: "Nothing was written. Free some space there, and run `sluice init` again.")
        }
        if error.exists {
            // A rename names two paths.
            let place = (try? FileStatus.ifPresent(at: path)) != nil ? path.display : error.subject
            return CommandError(
                .conflict, "\(place) exists already, and nothing was written",
                remedy: "If it is of an earlier attempt, remove it, and run `sluice init` again.")
        }
        return error
    }

    /// Removes what was made, unless the configuration has its name, and ends the process in `end`, which learns whether
    /// it has. No file is made any more meanwhile.
    func interrupt(_ end: (_ isPublished: Bool) -> Void) {
        state.withLock { state in
            if !state.isPublished { state.undo() }
            end(state.isPublished)
        }
    }
}

/// A path as one word of a command line, in quotes only where it needs them.
func shellWord(_ path: FilePath) -> String {
    let isPlain = path.bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "/._-@".utf8.contains(byte)
        }
    }
    return isPlain ? path.display : shellQuoted(path.display)
}
