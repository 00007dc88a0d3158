internal import CLinux
package import Core
internal import Glibc
package import Linux

/// A file system of one kind, mounted for a test. Only root may mount.
package final class Volume: Sendable {
    package enum Kind: String, Sendable, CaseIterable { case ext4, xfs, btrfs, tmpfs, overlay }

    package let kind: Kind
    /// Its root.
    package let path: FilePath
    /// The lower directory of an overlay: its files are visible through the overlay.
    package let lower: FilePath?
    private let disk: LoopDisk?
    private let memory: SmallDisk?
    private let place: TemporaryFolder?

    /// - Parameter lower: Called with the lower directory of an overlay before that is mounted.
    package init(_ kind: Kind, fillLower: (FilePath) throws -> Void = { _ in }) async throws {
        self.kind = kind
        switch kind {
        case .ext4, .xfs, .btrfs:
            let disk = try await LoopDisk(kind == .ext4 ? .ext4 : kind == .xfs ? .xfs : .btrfs)
            (self.disk, memory, place, lower, path) = (disk, nil, nil, nil, disk.path)
        case .tmpfs:
            let memory = try SmallDisk(size: 64 << 20)
            (disk, self.memory, place, lower, path) = (nil, memory, nil, nil, memory.path)
        case .overlay:
            // Its upper directory needs a file system that supports the extended attributes of overlays.
            let disk = try await LoopDisk(.ext4)
            let place = TemporaryFolder()
            let lower = disk.path.appending("lower")
            for name in ["lower", "upper", "work"] { try Files.makeFolders(disk.path.appending(FilePath(name))) }
            try fillLower(lower)
            let path = place.path.appending("merged")
            try Files.makeFolders(path)
            let options = ["lower", "upper", "work"].map { "\($0)dir=\(disk.path.display)/\($0)" }.joined(
                separator: ",")
            try systemCall("mount", on: path.display) {
                path.withCString { Glibc.mount("sluice-test", $0, "overlay", 0, options) }
            }
            (self.disk, memory, self.place, self.lower, self.path) = (disk, nil, place, lower, path)
        }
    }

    // The overlay is unmounted before the disk under it. MNT_DETACH as everywhere in tests.
    deinit { if kind == .overlay { _ = path.withCString { umount2($0, 2) } } }
}

/// Lets the kernel copy from the offset of one file to the offset of another (copy_file_range(2)).
///
/// - Returns: The number of bytes; 0 at the end.
package func copyRange(
    _ from: borrowing Descriptor, _ to: borrowing Descriptor, _ count: Int, named path: FilePath
) throws(SystemError) -> Int {
    try from.withNumber { source throws(SystemError) in
        try to.withNumber { target throws(SystemError) in
            Int(try systemCall("copy_file_range", on: path.display) { sluice_copy_file_range(source, target, count) })
        }
    }
}
