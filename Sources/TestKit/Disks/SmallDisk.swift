package import Core
internal import Glibc
package import Linux

/// A small file system in memory that fills up quickly. Only root may mount it.
package final class SmallDisk: Sendable {
    package let path: FilePath
    private let folder = TemporaryFolder()

    /// Whether this process may mount.
    package static var isPossible: Bool { (try? SmallDisk()) != nil }

    /// - Parameters:
    ///   - place: The mount point; by default in a folder of its own.
    ///   - size: Bytes.
    ///   - files: The number of files and folders that fit; by default no limit of its own.
    package init(at place: FilePath? = nil, size: Int = 4 << 20, files: Int? = nil) throws(SystemError) {
        path = place ?? folder.path.appending("disk")
        try Files.makeFolders(path)
        let options = "size=\(size),mode=700" + (files.map { ",nr_inodes=\($0)" } ?? "")
        try systemCall("mount", on: path.display) {
            path.withCString { Glibc.mount("sluice-test", $0, "tmpfs", 0, options) }
        }
    }

    /// Makes space for more files on a disk.
    package static func resize(_ path: FilePath, files: Int) throws(SystemError) {
        try systemCall("mount", on: path.display) {
            path.withCString {
                Glibc.mount("sluice-test", $0, "tmpfs", CUnsignedLong(MS_REMOUNT), "nr_inodes=\(files)")
            }
        }
    }

    // MNT_DETACH: a file that is still open after a failed test must not keep the mount.
    deinit { _ = path.withCString { umount2($0, 2) } }
}

/// A folder that is visible at a second place too. Only root may mount it.
package final class BindMount: Sendable {
    private let place: FilePath

    package init(of folder: FilePath, at place: FilePath) throws(SystemError) {
        self.place = place
        try systemCall("mount", on: place.display) {
            folder.withCString { source in
                place.withCString { Glibc.mount(source, $0, nil, CUnsignedLong(MS_BIND), nil) }
            }
        }
    }

    deinit { _ = place.withCString { umount2($0, 2) } }
}

/// A file that takes all the space that a disk has left.
package struct Filler: Sendable {
    private let path: FilePath

    /// - Parameter folder: On the disk.
    package init(in folder: FilePath) { path = folder.appending("filler") }

    /// Takes the free space, to the last byte; also space that became free since the last call.
    ///
    /// - Parameter most: The limit in bytes.
    package func fill(atMost most: Int = .max) throws(SystemError) {
        let file = try Descriptor.open(path, for: .updating)
        var offset = try FileStatus(of: file, named: path).size
        var (left, size) = (most, 256 << 10)
        while size > 0, left > 0 {
            let piece = [UInt8](repeating: 0x5A, count: min(size, left))
            let (count, error) = piece.withUnsafeBytes { file.write($0, at: offset, named: path) }
            offset += Int64(count)
            left -= count
            if let error {
                guard error.isFull else { throw error }
                size /= 4
            }
        }
        // Blocks that were promised but not yet allocated would only count as used later.
        try file.sync(named: path)
    }

    /// Releases the space.
    package func remove() throws(SystemError) {
        // A program that another test starts may still have the file open, as a copy of this process has between fork(2)
        // and execve(2): the removal alone would release the space only after that.
        if try FileStatus.ifPresent(at: path) != nil {
            try Descriptor.open(path, for: .updating).setSize(0, named: path)
        }
        try Files.removeIfPresent(path)
    }
}
