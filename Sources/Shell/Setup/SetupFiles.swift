internal import Config
internal import Core
internal import Linux

/// The files that `sluice init` makes: all of them, or none.
struct SetupFiles {
    /// The configuration.
    let path: FilePath
    /// The group that may read them; `nil` for files of this user alone.
    let group: UInt32?
    /// What is to be removed when a later step fails, the last first.
    private var made: [(path: FilePath, isFolder: Bool)] = []

    /// - Parameter group: The service's group; by default `sluice`.
    init(_ path: FilePath, group: UInt32? = nil) {
        self.path = path
        self.group = UserDatabase.user == 0 ? group ?? UserDatabase.group(named: "sluice") : nil
    }

    /// Makes the folder of the configuration and its parents.
    mutating func makeFolder(_ folder: FilePath) throws {
        var missing: [FilePath] = []
        var next = folder
        while try FileStatus.ifPresent(at: next) == nil, !next.parent.isEmpty, next.parent != next {
            missing.append(next)
            next = next.parent
        }
        try Files.makeFolders(folder, mode: group == nil ? 0o700 : 0o750, durably: true)
        made += missing.reversed().map { ($0, true) }
        guard let group, missing.contains(folder) else { return }
        try Descriptor.open(folder, for: .folder).setGroup(group, named: folder)
    }

    /// Writes a new file durably, 0640 for the service's group or 0600 for this user.
    mutating func write(_ file: FilePath, _ content: [UInt8]) throws {
        let descriptor = try Descriptor.open(file, for: .creating)
        made.append((file, false))
        if let group {
            try descriptor.setGroup(group, named: file)
            try descriptor.setMode(0o640, named: file)
        }
        try descriptor.write(content, named: file)
        try descriptor.sync(named: file)
        try descriptor.close(named: file)
    }

    /// Gives the configuration its name. A file that has it already stays.
    mutating func publish(_ draft: FilePath) throws {
        try Files.renameNoReplace(draft, to: path)
        // Until the name is on disk, a failure removes it with the rest.
        made = made.map { $0.path == draft ? (path, $0.isFolder) : $0 }
        try Files.syncFolder(path.parent)
    }

    /// Removes what was made. The error that led here is the one to report.
    mutating func undo() {
        for one in made.reversed() {
            if one.isFolder { try? Files.removeFolder(one.path) } else { try? Files.removeIfPresent(one.path) }
        }
        made = []
    }
}
