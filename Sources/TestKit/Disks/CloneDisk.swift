package import Core
internal import Glibc
internal import Linux

/// A separate disk for a test whose files can share blocks, mounted through a loop device. Only root may mount.
package final class CloneDisk: Sendable {
    package enum Kind: String, Sendable, CaseIterable { case xfs, btrfs }

    /// The root of the file system.
    package let path: FilePath
    private let folder = TemporaryFolder()

    package init(_ kind: Kind) async throws {
        path = folder.path.appending("disk")
        try Files.makeFolders(path)
        let image = folder.path.appending("image")
        try Descriptor.open(image, for: .creating).setSize(400 << 20, named: image)
        switch kind {
        case .xfs: try await run("mkfs.xfs", ["-q", "-f", "-m", "reflink=1", image.display])
        case .btrfs:
            let tools = try Tools.debian("btrfs")
            try await run(tools.appending("sbin/mkfs.btrfs").display, ["-q", image.display])
        }
        try await run("mount", ["-t", kind.rawValue, "-o", "loop", image.display, path.display])
    }

    // MNT_DETACH: a file that is still open after a failed test must not keep the mount.
    deinit { _ = path.withCString { umount2($0, 2) } }

    private func run(_ program: String, _ arguments: [String]) async throws {
        let command = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", program] + arguments
        let child = try Child(
            "/usr/bin/env", command, output: folder.path.appending("output"),
            errors: folder.path.appending("errors"))
        let ending = try await child.end(within: .seconds(60))
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
    }
}
