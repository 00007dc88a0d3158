package import Core
internal import FoundationEssentials
internal import Glibc
package import Linux

/// The source and the destinations of a staged copy, kept with the copy as `user.sluice.origin`.
///
/// It is not read while the database is intact. When that is lost, the copy may be all that is left of a file.
package struct CopyOrigin: Codable, Hashable, Sendable {
    /// One upload of it.
    package struct Upload: Codable, Hashable, Sendable {
        package var id: String
        package var destination: String
        /// Bytes of the remote name, in hexadecimal.
        package var name: String
        package var key: String?
        package var context: [String: String]?
        /// The address where it is created, or where it exists, as ``GivenURL`` stores it.
        package var url: String?

        package init(
            id: String, destination: String, name: FilePath, key: String?, context: [String: String], url: String? = nil
        ) {
            self.url = url
            self.id = id
            self.destination = destination
            self.name = hexadecimal(name.bytes)
            self.key = key
            self.context = context.isEmpty ? nil : context
        }
    }

    /// The configured folder's name, its path then, and the path below it; the paths as bytes in hexadecimal.
    package var folder: String
    package var root: String
    package var relative: String
    package var size: Int64
    /// mtime and ctime of the source, ns since 1970.
    package var modified: Int64
    package var changed: Int64
    package var inode: UInt64?
    package var born: Int64?
    package var fileSystem: String?
    /// Digest of the copy, in hexadecimal.
    package var sha256 = ""
    /// Size of the copy, where a command made it and it is not the source's content.
    package var staged: Int64?
    /// Digest of the source in that case, in hexadecimal, where it was computed.
    package var source: String?
    /// Token of the source's name while it is released.
    package var release: ReleaseToken?
    package var uploads: [Upload]

    private static let attribute = "user.sluice.origin"

    package init(_ identity: FileIdentity, root: FilePath, changed: Int64, uploads: [Upload]) {
        folder = identity.folder
        self.root = hexadecimal(root.bytes)
        relative = hexadecimal(identity.relative.bytes)
        size = identity.size
        modified = identity.modified
        self.changed = changed
        inode = identity.inode
        born = identity.born
        fileSystem = identity.fileSystem
        self.uploads = uploads
    }

    /// `nil` when a path in it is invalid.
    package var paths: (root: FilePath, relative: FilePath)? {
        guard let root = bytes(hexadecimal: root), let relative = bytes(hexadecimal: relative),
            // The kernel would stop reading at a NUL, which may name another file.
            !root.contains(0), !relative.contains(0)
        else { return nil }
        let below = FilePath(bytes: relative)
        guard FilePath(bytes: root).isAbsolute, !below.isAbsolute, !below.isEmpty, !below.components.contains(".."),
            below == below.normalised
        else {
            return nil
        }
        return (FilePath(bytes: root), below)
    }

    package var identity: FileIdentity? {
        paths.map {
            FileIdentity(
                folder: folder, relative: $0.relative, size: size, modified: modified, inode: inode, born: born,
                fileSystem: fileSystem)
        }
    }

    /// Writes it to a copy, whose next sync makes it durable.
    ///
    /// Errors are ignored: a file system without extended attributes, or without space for one, only loses this help.
    func write(to copy: borrowing Descriptor, named path: FilePath) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        var brief = self
        // If it does not fit, the values that a person gave by hand are dropped first, then those that the
        // configuration knows as well.
        for step in 0..<3 {
            if step == 1 { for index in brief.uploads.indices { brief.uploads[index].context = nil } }
            if step == 2 { brief.uploads = [] }
            guard let text = try? encoder.encode(brief) else { return }  // texts and numbers always encode
            do {
                try copy.setAttribute(Self.attribute, to: Array(text), named: path)
                return
            } catch {
                guard [ENOSPC, E2BIG, ERANGE].contains(error.code) else { return }
            }
        }
    }

    /// The origin stored with a copy; `nil` when there is none, or none that this program wrote.
    package static func read(_ path: FilePath) throws(SystemError) -> CopyOrigin? {
        let copy = try Descriptor.open(path, for: .reading)
        guard let text = try copy.attribute(attribute, named: path) else { return nil }
        // If it cannot be decoded, it was not written by us, or is damaged: the copy is then identified by its content.
        guard (try? checkJSON(text)) != nil else { return nil }
        return try? JSONDecoder().decode(CopyOrigin.self, from: Data(text))
    }
}
