internal import CLinux
package import Core
internal import Glibc

extension Descriptor {
    /// Opens the bytes of an upload for reading.
    package static func open(_ place: FilePlace) throws(SystemError) -> Descriptor {
        switch place {
        case .path(let path): try open(path, for: .reading)
        // Readers pass their offsets, so that they do not share one.
        case .open(let number, let path):
            Descriptor(
                adopting: try systemCall("fcntl", on: path.display) { fcntl(number, F_DUPFD_CLOEXEC, 0) })
        }
    }
}

/// A source that is kept open while an attempt reads it.
package final class SharedSourceFile: Sendable {
    private let descriptor: Descriptor
    /// Valid while this object lives.
    package let place: FilePlace

    package init(_ descriptor: consuming Descriptor, shown: FilePath) {
        place = .open(descriptor.withNumber { $0 }, shown: shown)
        self.descriptor = descriptor
    }
}

extension FileStatus {
    /// The status of an upload's bytes.
    package init(at place: FilePlace) throws(SystemError) {
        switch place {
        case .path(let path): try self.init(at: path)
        case .open(let number, let path):
            var status = sluice_look()
            try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
            self.init(status)
        }
    }
}
