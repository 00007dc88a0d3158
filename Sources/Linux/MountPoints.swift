internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// A place where a file system is to be mounted, asked again and again whether it is.
///
/// A mount that is missing looks like an empty folder; whoever writes into that fills the system's own disk.
package final class MountPoint: Sendable {
    package let path: FilePath

    private struct Seen {
        var number: UInt64
        var isOn: Bool
    }
    private let news: MountNews?
    private let seen = Mutex<Seen?>(nil)

    /// - Parameter path: As a person wrote it; links in it are followed.
    package init(_ path: FilePath) {
        self.path = path
        // Without it the table is read each time.
        news = try? MountNews()
    }

    /// Whether an open folder lies on what is mounted here, or on something mounted below it.
    package func holds(_ folder: borrowing Descriptor, named shown: FilePath) throws(SystemError) -> Bool {
        let number = folder.withNumber { sluice_mount_number($0, "") }
        if news?.hasCome() ?? true { seen.withLock { $0 = nil } }
        if let seen = seen.withLock({ $0 }), seen.number == number, number != 0 { return seen.isOn }
        let device = try FileLook(of: folder, named: shown).device
        let point = Files.real(path) ?? path
        let mounts = Mount.parse(try Files.read("/proc/self/mountinfo", limit: 16 << 20))
        // By its number; by device on kernels that do not tell it.
        let isOn = mounts.contains { mount in
            (number != 0 ? mount.number == number : mount.device == device)
                && (mount.point == point || mount.point.relative(to: point) != nil)
        }
        seen.withLock { $0 = Seen(number: number, isOn: isOn) }
        return isOn
    }

    /// The nearest place above `path`, or `path` itself, where fstab(5) wants something mounted; never `/`.
    package static func expected(for path: FilePath, table: FilePath = "/etc/fstab") -> FilePath? {
        // A system without the file mounts by other means, and says so in the configuration.
        guard let lines = try? Files.read(table) else { return nil }
        let names = Set([path.normalised, Files.real(path) ?? path.normalised])
        let points = lines.split(separator: UInt8(ascii: "\n")).compactMap { line -> FilePath? in
            let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard fields.count >= 2, fields[0].first != UInt8(ascii: "#") else { return nil }
            return Mount.unescaped(fields[1]).normalised
        }
        return points.filter { point in
            point.isAbsolute && point != "/" && names.contains { $0 == point || $0.relative(to: point) != nil }
        }.max { $0.bytes.count < $1.bytes.count }
    }

    /// What is mounted where an open folder lies, for people: `nfs4 from nas:/export`; `nil` where `/proc` does not tell.
    package static func described(_ path: FilePath, device: UInt64) -> String? {
        Mount.holding(path, device: device).map { "\($0.type) from \($0.source.display)" }
    }
}

/// All mounts, as they are at one moment.
package struct MountTable: Sendable {
    private let mounts: [Mount]

    /// - Parameter text: As `/proc/self/mountinfo` has it. Where there is none, every path is its own origin.
    package init(_ text: [UInt8]? = try? Files.read("/proc/self/mountinfo", limit: 16 << 20)) {
        mounts = text.map { Mount.parse($0) } ?? []
    }

    /// The same path for a place however it is reached: a bind mount shows one folder at two.
    ///
    /// - Parameter path: Without symbolic links.
    package func origin(of path: FilePath) -> FilePath {
        var nearest: Mount?
        // Of two at one point the later one covers the earlier.
        for mount in mounts where path == mount.point || path.relative(to: mount.point) != nil {
            if mount.point.bytes.count >= nearest?.point.bytes.count ?? 0 { nearest = mount }
        }
        guard let nearest else { return path }
        let inside = path == nearest.point ? nearest.root : nearest.root.joined(path.relative(to: nearest.point))
        let widest = mounts.filter {
            $0.device == nearest.device && (inside == $0.root || inside.relative(to: $0.root) != nil)
        }.min { $0.root.bytes.count < $1.root.bytes.count }
        guard let widest, widest.number != nearest.number else { return path }
        return inside == widest.root ? widest.point : widest.point.joined(inside.relative(to: widest.root))
    }
}

extension FilePath {
    fileprivate func joined(_ relative: FilePath?) -> FilePath { relative.map { appending($0) } ?? self }
}

extension Files {
    /// The path with every symbolic link followed (realpath(3)); `nil` when it is not there.
    package static func real(_ path: FilePath) -> FilePath? {
        guard let resolved = path.withCString({ realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return FilePath(bytes: UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }
}
