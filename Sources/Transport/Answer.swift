internal import Core
internal import Linux

/// The answer as it arrives.
struct Answer {
    /// Limit for the bytes of all header lines of one answer: a server that never ends its header is disconnected. An
    /// interim answer has a limit of its own, since a server may report its progress with many of them (104) while it
    /// receives one body.
    static let headerLimit = 64 << 10

    private(set) var headers = Headers()
    private(set) var body: [UInt8] = []
    /// The lines belong to a 1xx.
    private(set) var isInterim = false
    /// The empty line after the header came. libcurl treats a connection that ends before it as the end of the answer.
    private(set) var isHeaderWhole = false
    /// One answer was 417: libcurl then repeats the request without `Expect`.
    private(set) var refusesExpectation = false
    private let limit: Int
    private var headerBytes = 0

    init(limit: Int) { self.limit = limit }

    /// Whether this is a status line without a valid status. libcurl accepts any line that begins with `HTTP/`, in any
    /// case. It reads 200 where it finds no number, and any number after lower-case letters (its support for odd
    /// servers). Both would be an answer that the server did not give.
    static func isGarbled(_ line: UnsafeRawBufferPointer) -> Bool {
        guard beginsAnswer(line) else { return false }
        guard line.starts(with: "HTTP/".utf8) else { return true }
        let rest = line.dropFirst(5)
        let version = rest.prefix { $0.isDigit || $0 == UInt8(ascii: ".") }
        let status = rest.dropFirst(version.count).drop { $0 == UInt8(ascii: " ") }
        let isApart = rest.count > version.count + status.count
        return version.isEmpty || !isApart || status.prefix(while: \.isDigit).count != 3
    }

    private static func beginsAnswer(_ line: UnsafeRawBufferPointer) -> Bool {
        line.count >= 5 && line[4] == UInt8(ascii: "/")
            && zip(line, "http".utf8).allSatisfy { byte, letter in byte | 0x20 == letter }
    }

    /// - Returns: `false` when there are too many.
    mutating func receive(header line: UnsafeRawBufferPointer) -> Bool {
        if isInterim, Self.beginsAnswer(line) { headerBytes = 0 }
        headerBytes += line.count
        guard headerBytes <= Self.headerLimit else { return false }
        let text = String(decoding: line, as: UTF8.self)
        if Self.beginsAnswer(line) {
            // Each interim answer (100, 104) has a header of its own, and so has a 417; only the last one counts.
            headers = Headers()
            body = []
            isHeaderWhole = false
            let status = text.drop { $0 != " " }.dropFirst()
            isInterim = status.hasPrefix("1")
            if status.hasPrefix("417") { refusesExpectation = true }
            return true
        }
        if let first = line.first, first == UInt8(ascii: "\r") || first == UInt8(ascii: "\n") { isHeaderWhole = true }
        if let first = text.unicodeScalars.first, first == " " || first == "\t" {
            // The line continues the one before (RFC 9112, section 5.2) and is no header of its own.
            headers.continueLast(String(text.trimmed))
            return true
        }
        guard let colon = text.firstIndex(of: ":") else { return true }
        // libcurl ends the header at any line that begins with a carriage return, and passes on the whole line.
        let name = String(text[..<colon].trimmed)
        guard let first = line.first, first > UInt8(ascii: " "), isToken(name) else { return true }
        headers.append(name, String(text[text.index(after: colon)...].trimmed))
        return true
    }

    /// - Returns: `false` when it is too long.
    mutating func receive(body piece: UnsafeRawBufferPointer) -> Bool {
        guard body.count + piece.count <= limit else { return false }
        body.append(contentsOf: piece)
        return true
    }
}
