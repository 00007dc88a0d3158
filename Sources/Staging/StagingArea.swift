package import Core
package import Linux

/// The reason why a file could not be copied into staging.
package enum StagingError: Error, Sendable, CustomStringConvertible {
    /// The source differs from the record, or changed while it was copied: it has to settle again.
    case changed(FilePath)
    /// The source is missing.
    case missing(FilePath)
    /// The source cannot be read, for a reason of its own: permission, an error of its disk.
    case unreadable(SystemError)
    /// There is no space for the copy.
    case full(SystemError)
    /// The staging folder does not work.
    case broken(SystemError)
    /// The staging folder refuses files of this size, but takes smaller ones.
    case tooLarge(SystemError)
    /// `staging.copy: reflink` is set, and blocks of this source cannot be shared with the staging folder.
    case cannotShare(FilePath, SystemError)
    /// The command of an export cannot be started: no source is at fault.
    ///
    /// - Parameter isOfAll: It can be started for no file; `false` where its arguments are too long.
    case noCommand(String, isOfAll: Bool)
    /// The command could not make a file from this source.
    case commandFailed(code: Failure.Code, String)
    /// The command was ended by a signal, or the machine had too little memory or space for it: it may be tried again.
    case commandEnded(String)
    /// The caller asked to stop.
    case stopped(FilePath)

    /// Whether the staging folder is at fault: another source would fail too.
    package var isOfStaging: Bool {
        switch self {
        case .full, .broken: true
        case .changed, .missing, .unreadable, .tooLarge, .cannotShare, .stopped, .noCommand, .commandFailed,
            .commandEnded:
            false
        }
    }

    /// Whether the command of an export has failed.
    package var isOfCommand: Bool {
        switch self {
        case .commandFailed, .commandEnded: true
        case .changed, .missing, .unreadable, .tooLarge, .cannotShare, .stopped, .noCommand, .full, .broken: false
        }
    }

    package var description: String {
        switch self {
        case .changed(let path): "\(path.display) changed while it was copied"
        case .missing(let path): "\(path.display) no longer exists"
        case .noCommand(let text, _), .commandFailed(_, let text), .commandEnded(let text): text
        case .stopped(let path): "the copy of \(path.display) was stopped"
        case .unreadable(let error), .full(let error), .broken(let error), .tooLarge(let error),
            .cannotShare(_, let error):
            error.description
        }
    }

    /// Converts an error of writing into the staging folder.
    init(writing error: SystemError) {
        self = error.isFull ? .full(error) : error.isOfFileSize ? .tooLarge(error) : .broken(error)
    }
}

/// The folder that holds the copies: a file whose name has no `.part` is complete and durable.
///
/// It knows names, bytes and space, and nothing of uploads. Every call waits for the disk: not for Swift's own threads.
package struct StagingArea: Sendable {
    package enum Method: Sendable {
        /// Share blocks where the file system can, otherwise copy.
        case auto
        case copy
        case reflink
    }

    package let folder: FilePath
    let method: Method

    package init(folder: FilePath, method: Method = .auto) {
        self.folder = folder
        self.method = method
    }

    /// The path of a complete copy.
    package func path(_ name: FilePath) -> FilePath { folder.appending(name) }

    func partial(_ name: FilePath) -> FilePath { FilePath(bytes: path(name).bytes + Array(".part".utf8)) }

    /// Makes the folder if it is missing.
    package func prepare() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// The numbers of the complete copies, lowest first. Changes nothing; a missing folder holds none.
    package func copies() throws(SystemError) -> [Int64] {
        guard try FileStatus.ifPresent(at: folder) != nil else { return [] }
        return try Files.names(in: folder).compactMap { $0.text.flatMap { Int64($0) } }.filter { $0 > 0 }.sorted()
    }

    /// The folder for unknown copies. They may be all that is left of a file, so a person decides.
    package static let recovered: FilePath = "recovered"

    /// Moves an unknown copy to a place where no start sweeps it.
    ///
    /// - Returns: Its path now.
    package func setAside(_ name: FilePath) throws(SystemError) -> FilePath {
        try put(name, on: Self.recovered, as: name)
    }

    /// The folder for copies that are not sent any more, and whose sources are missing.
    package static let rescued: FilePath = "rescued"

    /// Moves a copy that is the only one left of a file to a place where it stays until a person takes it.
    ///
    /// - Parameter leaf: The file's own name, which is kept after the copy's as far as it fits.
    /// - Returns: Its path now, also after a crash between this and the record of it; `nil` when there is no copy.
    package func rescue(_ name: FilePath, leaf: FilePath) throws(SystemError) -> FilePath? {
        let prefix = name.bytes + [UInt8(ascii: "-")]
        // The extension shows which programs can open it.
        let named = FilePath(bytes: prefix + leaf.bytes.suffix(Self.longestName - prefix.count))
        if try size(of: name) == nil {
            let place = path(Self.rescued).appending(named)
            return try FileStatus.ifPresent(at: place) == nil ? nil : place
        }
        return try put(name, on: Self.rescued, as: named)
    }

    /// A length that any file system accepts, with space for a number.
    private static let longestName = 240

    private func put(_ name: FilePath, on subfolder: FilePath, as leaf: FilePath) throws(SystemError) -> FilePath {
        let subfolder = path(subfolder)
        try Files.makeFolders(subfolder, mode: 0o700)
        for number in 1... {
            let target = subfolder.appending(leaf.numbered(number))
            do {
                try Files.renameNoReplace(path(name), to: target)
                try Files.syncFolder(subfolder)
                return target
            } catch {
                guard error.exists, number < 10_000 else { throw error }
            }
        }
        return path(name)
    }

    /// Makes the folder again if it was removed. Its copies are staged again when they are missed.
    package func restore() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// The folder in which a command works on one copy.
    func scratch(_ name: FilePath) -> FilePath { FilePath(bytes: path(name).bytes + Array(".export".utf8)) }

    /// Removes a copy, complete or partial. A missing copy is no error.
    package func remove(_ name: FilePath) throws(SystemError) {
        try Files.removeTree(scratch(name))
        try Files.removeIfPresent(path(name))
        try Files.removeIfPresent(partial(name))
    }

    /// The size of a complete copy; `nil` when it is missing.
    package func size(of name: FilePath) throws(SystemError) -> Int64? {
        try FileStatus.ifPresent(at: path(name)).map(\.size)
    }

    /// Bytes that are free for us in the file system.
    package func free() throws(SystemError) -> Int64 { try Space(at: folder).free }
}
