internal import CZlib

/// An encoding of bytes that `Content-Encoding` can name.
package enum Compressed: CInt, Sendable, CaseIterable {
    case gzip = 31
    /// `deflate` in the form of RFC 9110, and in the form of many servers.
    case zlib = 15
    case raw = -15

    package func callAsFunction(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var stream = z_stream()
        guard sluice_deflate_begin(&stream, 9, rawValue) == Z_OK else { return [] }
        defer { deflateEnd(&stream) }
        var input = Array(bytes)
        var result = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(input.count))) + 64)
        let capacity = UInt32(result.count)
        let left = input.withUnsafeMutableBufferPointer { input in
            result.withUnsafeMutableBufferPointer { output -> UInt32 in
                (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, capacity)
                _ = deflate(&stream, Z_FINISH)
                return stream.avail_out
            }
        }
        return Array(result.prefix(Int(capacity - left)))
    }
}
