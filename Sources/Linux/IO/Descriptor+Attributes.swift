internal import CLinux
package import Core
internal import Glibc

// Extended attributes (xattr(7)): small values that a file system keeps with a file.

extension Descriptor {
    /// - Throws: `ENOTSUP` where the file system has no attributes, `ENOSPC` and `E2BIG` where the value does not fit.
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
    /// - Returns: `nil` when the file has no such attribute, or the file system has no attributes.
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
    /// An attribute of the file or link itself; `nil` when it does not exist or cannot be read.
    static func attribute(_ name: String, of path: FilePath, limit: Int = 8192) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = path.withCString { path in
            buffer.withUnsafeMutableBytes { sluice_get_attribute_at(path, name, $0.baseAddress, $0.count) }
        }
        return count < 0 ? nil : Array(buffer.prefix(Int(count)))
    }
}
