internal import CLinux
package import Core
internal import Glibc

// Extended attributes (xattr(7)): a few words that a file system keeps with a file.

extension Descriptor {
    /// - Throws: `ENOTSUP` where the file system keeps none, `ENOSPC` and `E2BIG` where so many bytes do not fit.
    package borrowing func setAttribute(
        _ name: String, to value: [UInt8], named path: FilePath
    ) throws(SystemError) {
        try withNumber { number throws(SystemError) in
            _ = try systemCall("fsetxattr", on: path.display) {
                value.withUnsafeBytes { sluice_set_attribute(number, name, $0.baseAddress, $0.count) }
            }
        }
    }

    /// - Parameter limit: A longer value is refused with `ERANGE`.
    /// - Returns: `nil` when the file has none of this name, or the file system keeps none.
    package borrowing func attribute(
        _ name: String, limit: Int = 8192, named path: FilePath
    ) throws(SystemError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: limit)
        do {
            let count = try withNumber { number throws(SystemError) in
                try systemCall("fgetxattr", on: path.display) {
                    buffer.withUnsafeMutableBytes { sluice_get_attribute(number, name, $0.baseAddress, $0.count) }
                }
            }
            return Array(buffer.prefix(Int(count)))
        } catch {
            if error.code == ENODATA || error.code == ENOTSUP { return nil }
            throw error
        }
    }
}

extension Files {
    /// An attribute of what has this name itself; `nil` when it has none, or it cannot be read.
    static func attribute(_ name: String, of path: FilePath, limit: Int = 8192) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = path.withCString { path in
            buffer.withUnsafeMutableBytes { sluice_get_attribute_at(path, name, $0.baseAddress, $0.count) }
        }
        return count < 0 ? nil : Array(buffer.prefix(Int(count)))
    }
}
