internal import Core
internal import Digests
internal import Linux
internal import WebServer

/// Finds out from the disk whether the receiver holds a content under a name, in the same way as a delivery of it.
struct Lookup {
    let directory: UploadDirectory

    /// The number of names that a delivery may have tried for `requestedPath`.
    private static let names = 100

    struct Held {
        /// The path below the receiver's folder.
        let path: FilePath
        let status: FileStatus
    }

    /// - Parameter digest: SHA-256 in hexadecimal, lower case.
    func find(_ requestedPath: FilePath, length: Int64, digest: String) throws -> Held? {
        var folder = try Descriptor.open(directory.root, for: .folder)
        for part in requestedPath.parent.components {
            // The folder is missing, or another kind of file has its name: then nothing is held below it.
            do { folder = try Files.openFolder(part, in: folder) } catch {
                if error.isMissing || error.isLink { return nil }
                throw error
            }
        }
        for number in 1...Self.names {
            let name = requestedPath.name.numbered(number)
            let status: FileStatus
            do { status = try FileStatus(at: name, in: folder) } catch {
                if error.isMissing { return nil }
                throw error
            }
            guard status.isRegular, status.size == length else { continue }
            let path = requestedPath.parent.appending(name)
            if directory.digest(of: PercentCoding.encode(path.bytes, keeping: "/"), status) == digest {
                return Held(path: path, status: status)
            }
            if try isSame(name, digest, in: folder) {
                // The client may remove its own file: so this one is made durable before the answer.
                try folder.sync(named: path.parent)
                return Held(path: path, status: status)
            }
        }
        return nil
    }

    private func isSame(_ name: FilePath, _ digest: String, in folder: borrowing Descriptor) throws -> Bool {
        do {
            let file = try folder.open(name, for: .reading)
            guard try FilePublisher.digest(of: file, named: name) == digest else { return false }
            try file.sync(named: name)
            return true
        } catch let error as SystemError where error.isMissing || error.isDenied {
            // A file that cannot be compared counts as different.
            return false
        }
    }
}

extension UploadDirectory {
    /// The digest in the record of a delivery, if the file is still the delivered one.
    func digest(of name: String, _ status: FileStatus) -> String? {
        finished { record in
            record.inode == status.inode && record.length == status.size && record.modified == status.modified
                && record.born == status.born && record.name == name
        }?.digest
    }
}
