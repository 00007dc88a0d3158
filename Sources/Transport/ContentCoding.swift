internal import CZlib
internal import Core

/// Decodes the `Content-Encoding` of an answer that is read as text (RFC 9110, section 8.4.1).
///
/// It uses zlib, and not libcurl's `CURLOPT_ACCEPT_ENCODING`, for three reasons. That option would ask for codings with
/// every request, including those for the size and tag of a stored object. It has no limit for the decoded size. And an
/// undecodable body ends like a broken connection, so that the status is lost.
enum ContentCoding {
    enum Problem: Error, Hashable {
        case tooLong
        /// Contains the problem, as a text that follows "its body".
        case unreadable(String)
    }

    /// No sensible answer applies more codings than this.
    private static let maxCodings = 3
    private static let piece = 16 << 10

    /// - Parameters:
    ///   - codings: In the order in which they were applied.
    ///   - limit: Maximum bytes of each step's result, enforced during decoding.
    static func decode(_ body: [UInt8], _ codings: [String], limit: Int) throws(Problem) -> [UInt8] {
        guard codings.count <= maxCodings else { throw .unreadable("is coded \(codings.count) times") }
        var body = body
        for coding in codings.reversed() {
            switch coding {
            case "gzip", "x-gzip": body = try gunzip(body, limit)
            case "deflate":
                // RFC 9110 requires zlib's wrapper; many servers leave it out.
                do throws(Problem) { body = try inflate(body, windowBits: zlibWindow, limit, "deflate").bytes } catch {
                    guard error != .tooLong else { throw error }
                    let plain = try inflate(body, windowBits: -zlibWindow, limit, "deflate")
                    guard plain.used == body.count else { throw .unreadable("is not valid `deflate`") }
                    body = plain.bytes
                }
            default: throw .unreadable("is in the encoding `\(printable(String(coding.prefix(40))))`")
            }
        }
        return body
    }

    private static let zlibWindow: CInt = 15
    /// zlib's flag for gzip's header.
    private static let gzipWindow: CInt = 16 + 15

    /// Decodes all members, one after the other (RFC 1952, section 2.2).
    private static func gunzip(_ body: [UInt8], _ limit: Int) throws(Problem) -> [UInt8] {
        var result: [UInt8] = []
        var rest = body[...]
        repeat {
            let member = try inflate(Array(rest), windowBits: gzipWindow, limit - result.count, "gzip")
            result += member.bytes
            rest = rest.dropFirst(member.used)
            // Some servers fill their last block with zeros.
        } while !rest.allSatisfy { $0 == 0 }
        return result
    }

    /// - Returns: The decoded bytes, and how many bytes were read until the end.
    private static func inflate(
        _ body: [UInt8], windowBits: CInt, _ limit: Int, _ coding: String
    ) throws(Problem) -> (bytes: [UInt8], used: Int) {
        var stream = z_stream()
        guard sluice_inflate_begin(&stream, windowBits) == Z_OK else {
            throw .unreadable("cannot be read: zlib has no memory")
        }
        defer { inflateEnd(&stream) }
        var body = body
        var result: [UInt8] = []
        var space = [UInt8](repeating: 0, count: piece)
        let status = body.withUnsafeMutableBufferPointer { input -> CInt in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(clamping: input.count)
            while true {
                let status = space.withUnsafeMutableBufferPointer { output -> CInt in
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(piece)
                    let status = CZlib.inflate(&stream, Z_NO_FLUSH)
                    result.append(contentsOf: output.prefix(piece - Int(stream.avail_out)))
                    return status
                }
                if status != Z_OK || result.count > limit { return status }
            }
        }
        if result.count > limit { throw .tooLong }
        switch status {
        case Z_STREAM_END: return (result, body.count - Int(stream.avail_in))
        case Z_BUF_ERROR: throw .unreadable("ends in the middle of its `\(coding)`")
        default: throw .unreadable("is not valid `\(coding)`")
        }
    }
}

/// The bytes that were compressed with gzip; `nil` for others, and for more than `limit` bytes.
package func unpacked(gzip bytes: [UInt8], limit: Int) -> [UInt8]? {
    try? ContentCoding.decode(bytes, ["gzip"], limit: limit)
}

extension Response {
    /// Headers that describe the coded body, and are wrong for the decoded text: sizes and tags are never taken from
    /// it.
    private static let ofCodedForm: Set<String> = [
        "content-encoding", "content-length", "content-md5", "digest", "content-digest", "etag", "accept-ranges",
    ]

    /// The answer with its body decoded. A body that cannot be decoded is empty, and ``unreadable`` says why.
    ///
    /// - Parameter limit: Maximum size in bytes.
    /// - Throws: `.tooLarge`.
    func decoded(limit: Int) throws(TransportError) -> Response {
        let codings = headers.lines.filter { $0.name.lowercased() == "content-encoding" }
            .flatMap { $0.value.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }.filter { $0 != "identity" && !$0.isEmpty }
        guard !codings.isEmpty, !body.isEmpty else { return self }
        var response = self
        response.headers = Headers(
            headers.lines.filter { !Self.ofCodedForm.contains($0.name.lowercased()) }.map { ($0.name, $0.value) })
        do throws(ContentCoding.Problem) {
            response.body = try ContentCoding.decode(body, codings, limit: limit)
        } catch {
            switch error {
            case .tooLong:
                throw TransportError(
                    kind: .tooLarge, detail: TransportError.tooLong(limit), url: url, bytesSent: bytesSent,
                    bytesOnWire: bytesOnWire)
            case .unreadable(let words):
                response.body = []
                response.unreadable = words
            }
        }
        return response
    }
}

extension TransportError {
    static func tooLong(_ limit: Int) -> String { "the answer is longer than \(limit) bytes" }
}
