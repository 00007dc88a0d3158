internal import Core
internal import Glibc
internal import Linux

/// A file that a command makes for its output, and that only its user can read. One that exists stays as it is.
struct NewFile {
    let path: FilePath

    init(_ path: FilePath) { self.path = path }

    /// - Throws: Where the file exists already.
    func refuseExisting() throws {
        // If it cannot be looked at, ``create()`` says why.
        guard (try? FileStatus(at: path)) != nil else { return }
        throw unusable(Self.existing)
    }

    /// - Throws: Where the file exists already, or cannot be created.
    func create() throws {
        do { try Descriptor.open(path, for: .creating).close(named: path) } catch {
            throw unusable(error.code == EEXIST ? Self.existing : error.reason)
        }
    }

    func append(_ bytes: [UInt8]) throws {
        let file = try Descriptor.open(path, for: .updating)
        file.withNumber { _ = lseek($0, 0, SEEK_END) }
        try file.write(bytes, named: path)
        try file.close(named: path)
    }

    private static let existing = "there is such a file already, and it stays as it is"

    private func unusable(_ problem: String) -> CommandError {
        CommandError(.usage, "\(path.display) cannot be created: \(problem)", remedy: "Name another file.")
    }
}
