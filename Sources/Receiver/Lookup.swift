internal import Core
internal import Digests
internal import Linux
internal import WebServer

/// Finds out from the disk whether the receiver holds a content under a name, in the same way as a delivery of it.
struct Lookup {
    let shelf: Shelf

    /// The number of names that a delivery may have tried for `wish`.
    private static let names = 100

    struct Held {
        /// The path below the receiver's folder.
        let path: FilePath
        let look: FileLook
    }

    /// - Parameter digest: SHA-256 in hexadecimal, lower case.
    func find(_ wish: FilePath, length: Int64, digest: String) throws -> Held? {
        var folder = try Descriptor.open(shelf.root, for: .folder)
        for part in wish.parent.components {
            // The folder is missing, or another kind of file has its name: then nothing is held below it.
            do { folder = try Files.openFolder(part, in: folder) } catch {
                if error.isMissing || error.isLink { return nil }
                throw error
            }
        }
        for number in 1...Self.names {
            let name = wish.name.numbered(number)
            let look: FileLook
            do { look = try FileLook(at: name, in: folder) } catch {
                if error.isMissing { return nil }
                throw error
            }
            guard look.isRegular, look.size == length else { continue }
            let path = wish.parent.appending(name)
            if shelf.digest(of: PercentCoding.encode(path.bytes, keeping: "/"), look) == digest {
                return Held(path: path, look: look)
            }
            if try isSame(name, digest, in: folder) {
                // The client may remove its own file: so this one is made durable before the answer.
                try folder.sync(named: path.parent)
                return Held(path: path, look: look)
            }
        }
        return nil
    }

    private func isSame(_ name: FilePath, _ digest: String, in folder: borrowing Descriptor) throws -> Bool {
        do {
            let file = try folder.open(name, for: .reading)
            guard try Delivery.digest(of: file, named: name) == digest else { return false }
            try file.sync(named: name)
            return true
        } catch let error as SystemError where error.isMissing || error.isDenied {
            // A file that cannot be compared counts as different.
            return false
        }
    }
}

extension Shelf {
    /// The digest in the record of a delivery, if the file is still the delivered one.
    func digest(of name: String, _ look: FileLook) -> String? {
        finished { record in
            record.inode == look.inode && record.length == look.size && record.modified == look.modified
                && record.born == look.born && record.name == name
        }?.digest
    }
}
