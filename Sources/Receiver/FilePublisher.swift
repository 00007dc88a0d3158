internal import Core
internal import Digests
internal import Linux
internal import WebServer

/// The last step of an upload: its complete file gets its name, and replaces no other.
///
/// The name is recorded before the file gets it. So after a crash either the data is still in the receiver's folder,
/// and the step is repeated, or it is not, and the step was done.
struct FilePublisher {
    let directory: UploadDirectory
    let arrival: IncomingUpload

    /// Moves the data to its name. If a file with the same content has the name, nothing has to be done; if any other
    /// file has it, `name (2)` is tried, and so on.
    ///
    /// - Parameter commit: Makes the chosen name and the file durable.
    /// - Returns: The path below the receiver's folder.
    func place(digest: String, commit: (_ name: String, _ status: FileStatus, _ isOurs: Bool) throws -> Void) throws
        -> FilePath
    {
        var path = FilePath("")
        let folder = try openFolder(&path)
        let own = try Descriptor.open(directory.folder, for: .folder)
        let data = directory.data(of: arrival.id)
        var dataLook = try FileStatus(at: data)
        // The data itself, or on another file system a copy beside its final name, which every exit removes.
        let copy = FilePath("\(FinalName.ownFolder).\(arrival.id)")
        var isCopied = false
        defer {
            if isCopied {
                // Missing when it was renamed; if it stays, the next try overwrites it.
                try? Files.remove(copy, in: folder)
            }
        }
        var number = 1
        // A limit, so that a folder full of the same name is an error and not an endless search.
        while number < 10_000 {
            let name = arrival.requestedPath.name.numbered(number)
            let full = path.appending(name)
            if let status = try FileStatus.ifPresent(at: name, in: folder) {
                if try isSame(name, status, in: folder, digest: digest) {
                    try commit(PercentCoding.encode(full.bytes, keeping: "/"), status, false)
                    // Not synced: data that reappears after a power cut is recognised by this record, and is removed.
                    try Files.removeIfPresent(data)
                    return full
                }
                number += 1
                continue
            }
            try commit(PercentCoding.encode(full.bytes, keeping: "/"), dataLook, true)
            CrashPoint.reached("receiver-named")
            do {
                if isCopied {
                    try Files.renameNoReplace(copy, in: folder, to: name, in: folder)
                } else {
                    try Files.renameNoReplace(data.name, in: own, to: name, in: folder)
                }
            } catch {
                // Another writer took the name first: check the file that is there now.
                if error.exists { continue }
                guard error.crossesFileSystems, !isCopied else { throw error }
                isCopied = true
                dataLook = try copyData(data, dataLook, to: copy, in: folder)
                continue
            }
            CrashPoint.reached("receiver-renamed")
            // The receiver's folder is not synced: data that stays there after a power cut is found to be the same
            // content, and is removed.
            try folder.sync(named: full.parent)
            if isCopied { try Files.removeIfPresent(data) }
            return full
        }
        throw ReceiverError("\(arrival.requestedPath.display): 10,000 files of that name exist already")
    }

    /// Removes a delivered file, if it is still the delivered one and no other upload refers to it.
    func undo(_ record: Record) throws {
        guard record.isOurs == true, let name = record.name, !directory.isShared(name, by: arrival.id),
            let path = PercentCoding.bytes(decoding: name).map({ FilePath(bytes: $0) })
        else { return }
        do {
            guard try remove(path, of: record) else { return }
        } catch let error as SystemError where error.isMissing {
            // The owner of the folder may have moved it.
            return
        }
        directory.log("removed \(path.display) at its sender's request")
    }

    private func remove(_ path: FilePath, of record: Record) throws -> Bool {
        var folder = try Descriptor.open(directory.root, for: .folder)
        for part in path.parent.components { folder = try Files.openFolder(part, in: folder) }
        let status = try FileStatus(at: path.name, in: folder)
        guard status.inode == record.inode, status.size == record.length, status.modified == record.modified,
            status.born == record.born
        else { return false }
        try Files.remove(path.name, in: folder)
        try folder.sync(named: path.parent)
        return true
    }

    /// Copies the data to another file system, where a folder of the name is mounted: durable before it gets its name.
    private func copyData(
        _ data: FilePath, _ status: FileStatus, to copy: FilePath, in folder: borrowing Descriptor
    ) throws -> FileStatus {
        do { try Files.remove(copy, in: folder) } catch { if !error.isMissing { throw error } }
        let from = try Descriptor.open(data, for: .reading)
        let to = try folder.open(copy, for: .creating)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        while true {
            let got = try buffer.withUnsafeMutableBytes { bytes in
                let got = try from.read(into: bytes, at: offset, named: data)
                try to.write(UnsafeRawBufferPointer(rebasing: bytes[..<got]), named: copy)
                return got
            }
            if got == 0 { break }
            offset += Int64(got)
        }
        try to.setMode(0o640, named: copy)
        try to.setModified(status.modified, named: copy)
        try to.sync(named: copy)
        return try FileStatus(at: copy, in: folder)
    }

    static func digest(of file: borrowing Descriptor, named path: FilePath) throws -> String {
        hexadecimal(
            try Hasher.digest(.sha256) { block, offset throws(SystemError) in
                try file.read(into: block, at: offset, named: path)
            })
    }

    // MARK: Folders

    /// Opens the folder of the requested name, and creates missing folders. Where a component is taken by a file that
    /// is no folder (a symbolic link counts as one), the component gets a number, too.
    ///
    /// - Parameter path: Set to the folder's path below the root.
    private func openFolder(_ path: inout FilePath) throws -> Descriptor {
        var folder = try Descriptor.open(directory.root, for: .folder)
        for part in arrival.requestedPath.parent.components {
            var number = 1
            while true {
                let name = part.numbered(number)
                if try Files.makeFolder(name, in: folder) { try folder.sync(named: path) }
                do {
                    folder = try Files.openFolder(name, in: folder)
                    path = path.appending(name)
                    break
                } catch {
                    guard try FileStatus.ifPresent(at: name, in: folder).map({ !$0.isDirectory }) ?? false, number < 100
                    else {
                        throw error
                    }
                    number += 1
                }
            }
        }
        return folder
    }

    private func isSame(
        _ name: FilePath, _ status: FileStatus, in folder: borrowing Descriptor, digest: String
    ) throws -> Bool {
        guard status.isRegular, status.size == arrival.length else { return false }
        do {
            return try Self.digest(of: try folder.open(name, for: .reading), named: name) == digest
        } catch let error as SystemError where error.isMissing || error.isDenied {
            // A file that cannot be compared counts as different.
            return false
        }
    }
}
