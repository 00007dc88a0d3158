package import Core
internal import Glibc
internal import Linux

/// A folder of another machine, mounted by sshfs: the real program at both ends, with this machine as the other one.
/// Only root may mount it.
package final class RemoteFolder {
    /// Its path on this side.
    package let path: FilePath
    /// Its path on the other machine: changes here cause no events on this side.
    package let there: FilePath
    private let folder = TemporaryFolder()
    private let program: FilePath
    private let libraries: FilePath
    private var child: Child?

    /// The reason that a test which needs it gives when it is skipped.
    package static let need = "mounting by sshfs needs root, /dev/fuse and Debian's packages: sudo make test"

    /// Whether this machine supports one.
    package static let isPossible = Task { () -> Bool in
        do {
            let remote = try RemoteFolder()
            try await remote.mount()
            return true
        } catch { return false }
    }

    package init() throws {
        let tools = try Tools.debian("sshfs")
        program = tools.appending("usr/bin/sshfs")
        libraries = tools
        (path, there) = (folder.path.appending("mounted"), folder.path.appending("there"))
        for place in [path, there] { try Files.makeFolders(place) }
        // In place of ssh: the program that it would start at the other end.
        let server = tools.appending("usr/lib/openssh/sftp-server").display
        try folder.writeProgram("ssh", "exec \(server)")
    }

    // Waiting accesses get an error, and the mount is removed even while files are open.
    deinit { lose() }

    /// Mounts it, and returns when it is there.
    package func mount() async throws {
        let child = try Child(
            program,
            [
                "-f", "-o", "ssh_command=\(folder.path.appending("ssh").display)", "other:\(there.display)",
                path.display,
            ],
            environment: [
                "LD_LIBRARY_PATH": Tools.libraries(of: libraries).map(\.display).joined(separator: ":"),
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            ],
            output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        self.child = child
        let outside = try FileStatus(at: folder.path).device
        try await eventually("the remote folder is mounted") {
            try child.requireRunning()
            return try FileStatus(at: path).device != outside
        }
    }

    /// Simulates that the other machine is gone: every access fails from now on, and the mount stays.
    package func cut() { child?.end(with: SIGKILL) }

    /// Removes the mount, whether the other machine is gone or not.
    package func lose() {
        cut()
        _ = path.withCString { umount2($0, 1 | 2) }
    }
}
