package import Core
package import Linux

extension HeaderReader {
    /// The pieces of an open file, which stays open for as long as they are used.
    package convenience init(of descriptor: consuming Descriptor, named path: FilePath) throws(SystemError) {
        let file = OpenFile(descriptor, path)
        let size = try FileStatus(of: file.descriptor, named: path).size
        self.init(size: size) { offset, count throws(SystemError) in try file.read(offset, count) }
    }

    /// Opens a file for reading. A link is refused, and a FIFO does not block.
    package convenience init(path: FilePath) throws(SystemError) {
        try self.init(of: try Descriptor.open(path, for: .reading), named: path)
    }
}

/// A class, since a closure cannot own a descriptor.
private final class OpenFile {
    let descriptor: Descriptor
    private let path: FilePath

    init(_ descriptor: consuming Descriptor, _ path: FilePath) {
        self.descriptor = descriptor
        self.path = path
    }

    func read(_ offset: Int64, _ count: Int) throws(SystemError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        // The error leaves the closure as a value: the standard library's function does not pass on a typed error.
        let result = buffer.withUnsafeMutableBytes { bytes -> Result<Int, SystemError> in
            do throws(SystemError) { return .success(try descriptor.read(into: bytes, at: offset, named: path)) } catch
            {
                return .failure(error)
            }
        }
        return Array(buffer.prefix(try result.get()))
    }
}
