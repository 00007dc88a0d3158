package import Core
internal import Glibc
package import Linux

/// A file system whose server does not answer: every access waits until it is released. Only root may mount it.
///
/// It is the kernel's own FUSE without a program at the other end of the device (fuse(4)): to a program it looks like a
/// dead NFS or sshfs.
package final class DeadDisk: Sendable {
    package let path: FilePath
    private let place: TemporaryFolder?
    private let device: Descriptor

    /// - Parameter place: The mount point; by default in a folder of its own.
    package init(at place: FilePath? = nil) throws(SystemError) {
        let folder = place == nil ? TemporaryFolder() : nil
        self.place = folder
        let path = place ?? folder?.path.appending("disk") ?? ""
        self.path = path
        try Files.makeFolders(path)
        let number = try systemCall("open", on: "/dev/fuse") { open("/dev/fuse", O_RDWR | O_CLOEXEC) }
        device = Descriptor(adopting: number)
        let options = "fd=\(number),rootmode=40000,user_id=0,group_id=0"
        try systemCall("mount", on: path.display) {
            path.withCString { Glibc.mount("dead-server", $0, "fuse.dead", 0, options) }
        }
    }

    // MNT_FORCE ends waiting accesses, MNT_DETACH removes the mount even while files are open.
    deinit { _ = path.withCString { umount2($0, 1 | 2) } }

    /// Fails all waiting accesses.
    package func release() { _ = path.withCString { umount2($0, 1 | 2) } }

    /// Whether this process may mount it.
    package static var isPossible: Bool { (try? DeadDisk()) != nil }
}
