package import Core
package import Linux

/// Why a file could not be copied into staging.
package enum StagingError: Error, Sendable, CustomStringConvertible {
    /// The source is not what was recorded, or changed while it was copied: it has to settle again.
    case changed(FilePath)
    /// The source is not there.
    case missing(FilePath)
    /// The source cannot be read, for its own sake: permission, an error of its disk.
    case unreadable(SystemError)
    /// There is no room for the copy.
    case full(SystemError)
    /// The staging folder does not work.
    case broken(SystemError)
    /// The staging folder takes no file of this size, and smaller ones all the same.
    case tooLarge(SystemError)
    /// `staging.copy: reflink` is set, and blocks of this source cannot be shared with the staging folder.
    case cannotShare(FilePath, SystemError)
    /// The command of an export cannot be started: nobody's file is to blame.
    case noCommand(String)
    /// The command could not make anything of this source.
    case commandFailed(code: String, String)
    /// The command was ended by somebody, or the machine had no room for it: it may be tried again.
    case commandEnded(String)
    /// The caller asked to stop.
    case stopped(FilePath)

    /// The staging folder is to blame: another source would fare no better.
    package var isOfStaging: Bool {
        switch self {
        case .full, .broken: true
        case .changed, .missing, .unreadable, .tooLarge, .cannotShare, .stopped, .noCommand, .commandFailed,
            .commandEnded:
            false
        }
    }

    package var description: String {
        switch self {
        case .changed(let path): "\(path.display) changed while it was copied"
        case .missing(let path): "\(path.display) is not there any more"
        case .noCommand(let text), .commandFailed(_, let text), .commandEnded(let text): text
        case .stopped(let path): "the copy of \(path.display) was stopped"
        case .unreadable(let error), .full(let error), .broken(let error), .tooLarge(let error),
            .cannotShare(_, let error):
            error.description
        }
    }

    /// What writing into the staging folder was refused with.
    init(writing error: SystemError) {
        self = error.isFull ? .full(error) : error.isOfFileSize ? .tooLarge(error) : .broken(error)
    }
}

/// The folder that holds the copies: a name without `.part` in it is whole and durable.
///
/// It knows names, bytes and rooms, and nothing of uploads. Every call waits for the disk: not for Swift's own threads.
package struct StagingArea: Sendable {
    package enum Method: Sendable {
        /// Share blocks where the file system can, else copy.
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

    /// Where a whole copy stands.
    package func path(_ name: FilePath) -> FilePath { folder.appending(name) }

    func partial(_ name: FilePath) -> FilePath { FilePath(bytes: path(name).bytes + Array(".part".utf8)) }

    /// Makes the folder where it is missing.
    package func prepare() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// The numbers of the whole copies, lowest first. Changes nothing; a folder that is not there holds none.
    package func copies() throws(SystemError) -> [Int64] {
        guard try FileLook.ifPresent(at: folder) != nil else { return [] }
        return try Files.names(in: folder).compactMap { $0.text.flatMap { Int64($0) } }.filter { $0 > 0 }.sorted()
    }

    /// Where copies go that nobody knows. They may be all that is left of a file, so a person decides.
    package static let recovered: FilePath = "recovered"

    /// Puts a copy that nobody knows where no start sweeps it.
    ///
    /// - Returns: Where it is now.
    package func setAside(_ name: FilePath) throws(SystemError) -> FilePath {
        try put(name, on: Self.recovered, as: name)
    }

    /// Where copies go that nobody sends any more, and whose sources are not there.
    package static let rescued: FilePath = "rescued"

    /// Puts a copy that is the only one left of a file where it stays until a person takes it.
    ///
    /// - Parameter leaf: The file's own name, of which as much is kept as fits behind the copy's.
    /// - Returns: Where it is now, also after a crash between this and the record of it; `nil` when there is no copy.
    package func rescue(_ name: FilePath, leaf: FilePath) throws(SystemError) -> FilePath? {
        let prefix = name.bytes + [UInt8(ascii: "-")]
        // The ending says what can play it.
        let named = FilePath(bytes: prefix + leaf.bytes.suffix(Self.longestName - prefix.count))
        if try size(of: name) == nil {
            let place = path(Self.rescued).appending(named)
            return try FileLook.ifPresent(at: place) == nil ? nil : place
        }
        return try put(name, on: Self.rescued, as: named)
    }

    /// Bytes that any file system takes, with room for a number.
    private static let longestName = 240

    private func put(_ name: FilePath, on shelf: FilePath, as leaf: FilePath) throws(SystemError) -> FilePath {
        let shelf = path(shelf)
        try Files.makeFolders(shelf, mode: 0o700)
        for number in 1... {
            let target = shelf.appending(leaf.numbered(number))
            do {
                try Files.renameNoReplace(path(name), to: target)
                try Files.syncFolder(shelf)
                return target
            } catch {
                guard error.exists, number < 10_000 else { throw error }
            }
        }
        return path(name)
    }

    /// Makes the folder anew where somebody removed it. What was in it is staged again when it is missed.
    package func restore() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// Where a command works on one copy.
    func scratch(_ name: FilePath) -> FilePath { FilePath(bytes: path(name).bytes + Array(".export".utf8)) }

    /// Removes a copy, whole or partial. Not there is fine.
    package func remove(_ name: FilePath) throws(SystemError) {
        try Files.removeTree(scratch(name))
        try Files.removeIfPresent(path(name))
        try Files.removeIfPresent(partial(name))
    }

    /// The size of a whole copy; `nil` when it is not there.
    package func size(of name: FilePath) throws(SystemError) -> Int64? {
        try FileLook.ifPresent(at: path(name)).map(\.size)
    }

    /// Bytes that the file system has left for us.
    package func free() throws(SystemError) -> Int64 { try Space(at: folder).free }
}
