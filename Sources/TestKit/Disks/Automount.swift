package import Core
internal import Glibc
package import Linux

/// An automount: the kernel's autofs at a path, where a directory is mounted on every access. Only root may make one.
package final class Automount {
    private let place: FilePath
    private let folder = TemporaryFolder()
    private let child: Child

    /// The reason that a test which needs it gives when it is skipped.
    package static let need = "an automount needs root and a kernel with autofs: sudo make test"

    /// Whether this machine supports one.
    package static let isPossible = Task { () -> Bool in
        let folder = TemporaryFolder()
        do {
            let (place, directory) = (folder.path.appending("place"), folder.path.appending("directory"))
            for path in [place, directory] { try Files.makeFolders(path) }
            let mount = try await Automount(of: directory, at: place)
            return mount.times == 0
        } catch { return false }
    }

    package init(of directory: FilePath, at place: FilePath) async throws {
        self.place = place
        let script = Repository.root.appending("Tests/Fixtures/automount.py")
        child = try Child(
            "/usr/bin/python3", ["-B", script.display, place.display, directory.display],
            output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        _ = try await child.line(after: "ready")
    }

    /// The number of mounts so far.
    package var times: Int {
        let printed = try? child.standardOutput()  // nothing before its first line
        return printed?.split(separator: "\n").count { $0 == "mounted" } ?? 0
    }

    /// Unmounts the directory until the next access, as an automounter does with an unused one.
    ///
    /// - Throws: `EBUSY` while it is in use.
    package func expire() throws(SystemError) {
        try systemCall("umount", on: place.display) { place.withCString { umount2($0, 0) } }
    }

    // Without its program the kernel mounts nothing any more, and no access waits.
    deinit {
        child.end(with: SIGKILL)
        for _ in 0..<2 { _ = place.withCString { umount2($0, 2) } }
    }
}
