package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// A separate disk for a test whose power can be cut: a file system in a sparse image, mounted through a loop device.
///
/// Only root may mount. It is unmounted when the last reference is released, also when the test fails.
package final class LoopDisk: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// Mounted with `noauto_da_alloc`: the kernel then writes nothing early for programs that forgot to sync.
        case ext4
        case xfs
        /// Its power cannot be cut.
        case btrfs

        /// The kinds whose power can be cut.
        package static let allCases: [Kind] = [.ext4, .xfs]

        /// The smallest size that its mkfs accepts without complaint.
        fileprivate var smallest: Int64 {
            switch self {
            case .ext4: 64 << 20
            case .xfs: 320 << 20
            case .btrfs: 128 << 20
            }
        }
        fileprivate var options: String { self == .ext4 ? "loop,noauto_da_alloc" : "loop" }
        fileprivate var make: [String] {
            switch self {
            case .ext4: ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"]
            case .xfs: ["-q", "-f", "-m", "reflink=1"]
            case .btrfs: ["-q", "-f"]
            }
        }
        /// Debian's package is unpacked if the machine lacks the program.
        fileprivate func program() throws -> String {
            if self != .btrfs
                || ["/usr/sbin", "/sbin", "/usr/bin"].contains(where: {
                    (try? FileStatus(at: FilePath("\($0)/mkfs.btrfs"))) != nil
                })
            {
                return "mkfs.\(rawValue)"
            }
            return try Tools.debian("btrfs").appending("sbin/mkfs.btrfs").display
        }
    }

    package let kind: Kind
    /// The root of the file system.
    package var path: FilePath { place.withLock { $0 } }
    private let place: Mutex<FilePath>
    private let folder = TemporaryFolder()
    private var image: FilePath { folder.path.appending("image") }

    /// Makes the file system and mounts it.
    ///
    /// - Parameters:
    ///   - place: The mount point; by default in a folder of its own.
    ///   - size: Bytes; the minimum size of the file system when that is more.
    ///   - label: The name of the file system, as `lsblk -o NAME,LABEL` shows it.
    package init(_ kind: Kind, at place: FilePath? = nil, size: Int64 = 0, label: String? = nil) async throws {
        self.kind = kind
        self.place = Mutex(place ?? folder.path.appending("disk"))
        try Files.makeFolders(path)
        try Descriptor.open(image, for: .creating).setSize(max(size, kind.smallest), named: image)
        try await run(kind.program(), kind.make + (label.map { ["-L", $0] } ?? []) + [image.display])
        try await mount()
    }

    // MNT_DETACH: a file that is still open after a failed test must not keep the mount.
    deinit { _ = path.withCString { umount2($0, 2) } }

    /// Whether this machine has everything that the disks need. False also where root may not mount, as in most
    /// containers.
    package static let isPossible = Task { () -> Bool in
        do {
            let disk = try await LoopDisk(.ext4)
            try await disk.cutPower()
            return true
        } catch { return false }
    }

    /// The reason that a test which needs such disks gives when it is skipped.
    package static let need = "loop-mounted disks need root, mkfs.ext4, mkfs.xfs and xfs_io: sudo make test"

    /// Loses everything that was not synced, and mounts the disk again. No file on it may be open any more.
    package func cutPower() async throws {
        try await shutDown()
        try await remount()
    }

    /// Makes every access fail from now on; no more writes reach the disk. Unsynced data is lost.
    ///
    /// Without `-f`: the log is not flushed either (`XFS_FSOP_GOING_FLAGS_NOLOGFLUSH`, which ext4 accepts too).
    package func shutDown() async throws { try await run("xfs_io", ["-x", "-c", "shutdown", path.display]) }

    /// Makes every write wait until ``thaw()``, as a disk that does not answer. Its test must thaw it.
    package func freeze() async throws { try await run("xfs_io", ["-x", "-c", "freeze", path.display]) }
    package func thaw() async throws { try await run("xfs_io", ["-x", "-c", "thaw", path.display]) }

    /// Mounts it again, which replays its journal.
    package func remount() async throws {
        try await unmount()
        try await mount()
    }

    /// Unmounts it as an operator would: it must not be in use any more.
    package func unmount() async throws {
        try await eventually("the disk \(path) is idle", every: .milliseconds(20)) {
            if path.withCString({ umount2($0, 0) }) == 0 { return true }
            guard errno == EBUSY else { throw SystemError(call: "umount", subject: path.display, code: errno) }
            return false
        }
        // A process that made a mount namespace of its own meanwhile, as `ip netns exec` does, has a copy of the mount.
        // Then the file system lives on, and mounting the image again would return that dead file system, and not the
        // data on the disk.
        try await eventually("no other mount namespace has the disk \(path)", every: .milliseconds(20)) {
            try !isInUse()
        }
    }

    /// Whether a loop device still uses the image.
    private func isInUse() throws -> Bool {
        for device in try Files.names(in: "/sys/block") where device.display.hasPrefix("loop") {
            let file = FilePath("/sys/block/\(device.display)/loop/backing_file")
            // A device without an image has no such file.
            guard let line = try? Files.read(file, limit: 1 << 12) else { continue }
            if line.dropLast().elementsEqual(image.bytes) { return true }
        }
        return false
    }

    /// Makes the disk read-only (`true`), or writable again.
    package func setReadOnly(_ isReadOnly: Bool) async throws {
        try await run("mount", ["-o", "remount,\(isReadOnly ? "ro" : "rw")", path.display])
    }

    /// Mounts it again, through whichever loop device is free.
    ///
    /// - Parameter place: The mount point from now on; by default the one before.
    package func mount(at place: FilePath? = nil) async throws {
        if let place {
            try Files.makeFolders(place)
            self.place.withLock { $0 = place }
        }
        try await run("mount", ["-t", kind.rawValue, "-o", kind.options, image.display, path.display])
    }

    private func run(_ program: String, _ arguments: [String]) async throws {
        let errors = folder.path.appending("errors")
        let command = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", program] + arguments
        let child = try Child("/usr/bin/env", command, output: folder.path.appending("output"), errors: errors)
        let ending = try await child.end(within: .seconds(60))
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
    }
}
