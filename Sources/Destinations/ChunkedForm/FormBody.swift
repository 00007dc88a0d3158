internal import Core

/// A body of `multipart/form-data` (RFC 7578) around a piece of a file: the bytes before and after the piece.
struct FormBody: Sendable {
    let boundary: String
    private(set) var head: [UInt8] = []
    private(set) var tail: [UInt8] = []

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// - Parameter boundary: Long and random, so that no file contains it by chance, and new for each request.
    init(boundary: String = FormBody.randomBoundary()) { self.boundary = boundary }

    /// Appends a text part. Text parts go before the file, since servers may read in order.
    mutating func append(_ name: String, _ value: [UInt8]) {
        begin("form-data; name=\"", Array(name.utf8), "\"\r\n\r\n")
        head += value + Array("\r\n".utf8)
    }

    /// Begins the file's part; its bytes follow the head.
    mutating func appendFile(_ name: [UInt8], filename: [UInt8], contentType: [UInt8]) {
        begin("form-data; name=\"", name, "\"; filename=\"")
        head += Self.escaped(filename) + Array("\"\r\nContent-Type: ".utf8)
        // A line end would begin another header.
        head += contentType.filter { $0 >= 0x20 && $0 != 0x7F } + Array("\r\n\r\n".utf8)
        tail = Array("\r\n".utf8)
    }

    mutating func close() { tail += Array("--\(boundary)--\r\n".utf8) }

    private mutating func begin(_ before: String, _ name: [UInt8], _ after: String) {
        head += Array("--\(boundary)\r\nContent-Disposition: \(before)".utf8)
        head += Self.escaped(name) + Array(after.utf8)
    }

    /// Escapes a name like browsers do in forms: quotes and line ends as `%HH`, everything else unchanged.
    static func escaped(_ name: [UInt8]) -> [UInt8] {
        name.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "\""): Array("%22".utf8)
            case 0x0D: Array("%0D".utf8)
            case 0x0A: Array("%0A".utf8)
            default: [byte]
            }
        }
    }

    private static func randomBoundary() -> String {
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        return String(repeating: "-", count: 16) + String((0..<32).compactMap { _ in letters.randomElement() })
    }
}
