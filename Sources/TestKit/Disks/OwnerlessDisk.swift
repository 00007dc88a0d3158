package import Core
internal import Glibc
package import Linux

/// A card as other systems format it: NTFS in an image, mounted by ntfs-3g. The mount determines the owner of its
/// files. Only root may mount it.
package final class OwnerlessDisk {
    package let path: FilePath
    private let folder = TemporaryFolder()
    private let tools: FilePath
    private var image: FilePath { folder.path.appending("image") }

    /// The reason that a test which needs it gives when it is skipped.
    package static let need = "mounting NTFS needs root, /dev/fuse and Debian's packages: sudo make test"

    /// Whether this machine supports one.
    package static let isPossible = Task { () -> Bool in
        do {
            let disk = try OwnerlessDisk()
            try await disk.mount(owner: 0)
            return true
        } catch { return false }
    }

    /// - Parameter place: The mount point; by default in a folder of its own.
    package init(at place: FilePath? = nil) throws {
        tools = try Tools.debian("ntfs-3g")
        path = place ?? folder.path.appending("disk")
        try Files.makeFolders(path)
        try Descriptor.open(image, for: .creating).setSize(16 << 20, named: image)
    }

    /// Formats it and mounts it; all earlier files are gone.
    package func mount(owner: UInt32) async throws {
        try await run("sbin/mkntfs", ["-F", "-Q", "-q", image.display])
        try await run("bin/ntfs-3g", [image.display, path.display, "-o", "uid=\(owner)"])
    }

    /// Simulates that the card is pulled out.
    package func pullOut() throws(SystemError) {
        try systemCall("umount", on: path.display) { path.withCString { umount2($0, 0) } }
    }

    deinit { _ = path.withCString { umount2($0, 2) } }

    private func run(_ program: FilePath, _ arguments: [String]) async throws {
        let child = try Child(
            tools.appending(program), arguments,
            environment: [
                "LD_LIBRARY_PATH": Tools.libraries(of: tools).map(\.display).joined(separator: ":"),
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            ],
            output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        let ending = try await child.end(within: .seconds(60))
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
    }
}
