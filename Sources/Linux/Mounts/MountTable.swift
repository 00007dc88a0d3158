package import Core
internal import Glibc

/// All mounts at one moment.
package struct MountTable: Sendable {
    private let mounts: [Mount]
    private let covering: [FilePath: Mount]

    /// - Parameter text: In the form of `/proc/self/mountinfo`. Without it, every path is its own origin.
    package init(_ text: [UInt8]? = try? Files.read("/proc/self/mountinfo", limit: 16 << 20)) {
        mounts = text.map { Mount.parse($0) } ?? []
        // Of two mounts at one point the later one covers the earlier.
        covering = Dictionary(mounts.map { ($0.point, $0) }, uniquingKeysWith: { $1 })
    }

    /// Where a path leads, with links followed as far as it exists. A file system that may not answer is not accessed:
    /// at its mount point the resolution ends, and the rest of the path is used as it is written.
    ///
    /// - Parameter path: Absolute.
    /// - Returns: `slow` is the mount point of such a file system, if the path leads onto one.
    package func place(of path: FilePath) -> (path: FilePath, slow: FilePath?) {
        var pending = Array(path.components.reversed())
        var here: FilePath = "/"
        var links = 0
        while let step = pending.popLast() {
            if step == "." { continue }
            if step == ".." {
                here = here.parent.isEmpty ? "/" : here.parent
                continue
            }
            let next = here.appending(step)
            if let mount = covering[next], FileSystemKind.isSlow(mount.type) {
                return (pending.reversed().reduce(next) { $0.appending($1) }, next)
            }
            // For any error, the rest of the path is used as it is written.
            guard let status = try? FileStatus(at: next) else {
                return (pending.reversed().reduce(next) { $0.appending($1) }, nil)
            }
            guard status.mode & 0o170000 == 0o120000, links < 40, let target = Files.linkTarget(next) else {
                here = next
                continue
            }
            links += 1
            if target.isAbsolute { here = "/" }
            pending += target.components.reversed()
        }
        return (here, nil)
    }

    /// Whether a file system that may not answer is mounted below a place.
    package func hasSlow(below path: FilePath) -> Bool {
        mounts.contains { FileSystemKind.isSlow($0.type) && $0.point.relative(to: path) != nil }
    }

    /// What is mounted at a point. The kernel uses the number of a mount that is gone again at once, so another mount of
    /// the same device may be equal to it.
    package struct Mounted: Sendable, Hashable {
        package let number: UInt64
        package let device: UInt64

        package init(number: UInt64, device: UInt64) { (self.number, self.device) = (number, device) }
    }

    /// The mount points below a place.
    package func points(below path: FilePath) -> [FilePath: Mounted] {
        var points: [FilePath: Mounted] = [:]
        for mount in mounts {
            if let relative = mount.point.relative(to: path) {
                points[relative] = Mounted(number: mount.number, device: mount.device)
            }
        }
        return points
    }

    /// The source of the file system that contains a path: a device, or a server's share.
    ///
    /// - Parameter path: Absolute, without symbolic links.
    func source(of path: FilePath) -> FilePath? { nearest(to: path)?.source }

    private func nearest(to path: FilePath) -> Mount? {
        var nearest: Mount?
        // Of two mounts at one point the later one covers the earlier.
        for mount in mounts where path == mount.point || path.relative(to: mount.point) != nil {
            if mount.point.bytes.count >= nearest?.point.bytes.count ?? 0 { nearest = mount }
        }
        return nearest
    }

    /// The canonical path of a place, for every way to reach it: a bind mount shows one folder at two places.
    ///
    /// - Parameter path: Without symbolic links.
    package func origin(of path: FilePath) -> FilePath {
        guard let nearest = nearest(to: path) else { return path }
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
    /// The target of a symbolic link (readlink(2)); `nil` when it is no link or gone.
    package static func linkTarget(_ path: FilePath) -> FilePath? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = path.withCString { path in
            buffer.withUnsafeMutableBytes { buffer in
                buffer.baseAddress.map { readlink(path, $0.assumingMemoryBound(to: CChar.self), buffer.count) } ?? -1
            }
        }
        return count > 0 ? FilePath(bytes: buffer[..<count]) : nil
    }
}
