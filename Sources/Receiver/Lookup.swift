internal import Core
internal import Digests
internal import Linux
internal import WebServer

/// Whether the receiver holds a content under a name, told from the disk: as a delivery of the same would find it done.
struct Lookup {
    let shelf: Shelf

    /// The names that a delivery may have chosen for `wish`, up to this many.
    private static let names = 100

    struct Held {
        /// Below the receiver's folder.
        let path: FilePath
        let look: FileLook
    }

    /// - Parameter digest: SHA-256 in hexadecimal, lower case.
    func find(_ wish: FilePath, length: Int64, digest: String) throws -> Held? {
        var folder = try Descriptor.open(shelf.root, for: .folder)
        for part in wish.parent.components {
            // A folder that is missing, or something else of its name: then nothing is held below it.
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
                // Whoever asks may remove its own: so this is on the disk before it hears yes.
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
            // What cannot be compared is taken for something else.
            return false
        }
    }
}

extension Shelf {
    /// The digest that the record of a delivery tells, if the file is still the one that was delivered.
    func digest(of name: String, _ look: FileLook) -> String? {
        finished { record in
            record.inode == look.inode && record.length == look.size && record.modified == look.modified
                && record.born == look.born && record.name == name
        }?.digest
    }
}
