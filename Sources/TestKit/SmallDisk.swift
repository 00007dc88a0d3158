package import Core
internal import Glibc
internal import Linux

/// A file system of 4 MiB of its own, which only root may mount. Unmounted when the last reference goes.
package final class SmallDisk: Sendable {
    package let path: FilePath
    private let folder = TemporaryFolder()

    package static var isPossible: Bool { (try? SmallDisk()) != nil }

    /// - Parameter place: Where to mount it; by default in a folder of its own.
    package init(at place: FilePath? = nil) throws {
        let place = place ?? folder.path.appending("disk")
        try Files.makeFolders(place)
        let result = place.withCString { mount("sluice-test", $0, "tmpfs", 0, "size=4m,mode=700") }
        guard result == 0 else { throw SystemError(call: "mount", subject: place.display, code: errno) }
        path = place
    }

    deinit { _ = path.withCString { umount2($0, 2) } }
}
