internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// A place where a file system must be mounted. It is checked again and again.
///
/// A missing mount looks like an empty folder; writing into it would fill the system's own disk.
package final class MountPoint: Sendable {
    package let path: FilePath

    private struct Seen {
        var number: UInt64
        var isOn: Bool
    }
    private let events: MountEvents?
    private let seen = Mutex<Seen?>(nil)

    /// - Parameter path: As a person wrote it; links in it are followed.
    package init(_ path: FilePath) {
        self.path = path
        // Without notifications the table is read each time.
        events = try? MountEvents()
    }

    /// Whether an open folder is on the file system that is mounted here, or on one mounted below it.
    package func contains(_ folder: borrowing Descriptor, named shown: FilePath) throws(SystemError) -> Bool {
        let device = try FileStatus(of: folder, named: shown).device
        return try contains(folder.withNumber { sluice_mount_number($0, "") }, device: device)
    }

    package func contains(_ folder: borrowing OpenFolder) throws(SystemError) -> Bool {
        let device = try folder.status(at: "").device
        return try contains(folder.withNumber { sluice_mount_number($0, "") }, device: device)
    }

    private func contains(_ number: UInt64, device: UInt64) throws(SystemError) -> Bool {
        if events?.hasChanged() ?? true { seen.withLock { $0 = nil } }
        if let seen = seen.withLock({ $0 }), seen.number == number, number != 0 { return seen.isOn }
        let point = Files.real(path) ?? path
        let mounts = Mount.parse(try Files.read("/proc/self/mountinfo", limit: 16 << 20))
        // By mount number; by device on kernels that do not report the number.
        let isOn = mounts.contains { mount in
            (number != 0 ? mount.number == number : mount.device == device)
                && (mount.point == point || mount.point.relative(to: point) != nil)
        }
        seen.withLock { $0 = Seen(number: number, isOn: isOn) }
        return isOn
    }

    /// The nearest place above `path`, or `path` itself, that has an entry in fstab(5); never `/`.
    package static func expected(for path: FilePath, table: FilePath = "/etc/fstab") -> FilePath? {
        expected(among: [path.normalised, Files.real(path) ?? path.normalised], table: table)
    }

    /// The same for a path under all its names.
    static func expected(among names: Set<FilePath>, table: FilePath = "/etc/fstab") -> FilePath? {
        // A system without the file mounts by other means, and a person configures that.
        guard let lines = try? Files.read(table) else { return nil }
        let points = lines.split(separator: UInt8(ascii: "\n")).compactMap { line -> FilePath? in
            let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard fields.count >= 2, fields[0].first != UInt8(ascii: "#") else { return nil }
            return Mount.unescaped(fields[1]).normalised
        }
        return points.filter { point in
            point.isAbsolute && point != "/" && names.contains { $0 == point || $0.relative(to: point) != nil }
        }.max { $0.bytes.count < $1.bytes.count }
    }

    /// Describes the mount that contains an open folder, for people: `nfs4 from nas:/export`; `nil` where `/proc` does
    /// not tell.
    package static func described(_ path: FilePath, device: UInt64) -> String? {
        Mount.holding(path, device: device).map { "\($0.type) from \($0.source.display)" }
    }
}

extension Files {
    /// The path with every symbolic link followed (realpath(3)); `nil` when it does not exist.
    package static func real(_ path: FilePath) -> FilePath? {
        guard let resolved = path.withCString({ realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return FilePath(bytes: UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }
}
