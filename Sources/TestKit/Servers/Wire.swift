package import Core
internal import Dispatch
internal import Glibc
internal import Linux
internal import Synchronization

/// A TCP or Unix connection that sends exactly the bytes of a test: half requests, wrong lengths, silence.
///
/// Every read gives up after 20 s, times ``Patience/factor``, so that a test fails and does not hang.
package final class Wire: Sendable {
    /// An HTTP reply as it was received.
    package struct Reply: Sendable {
        package let status: Int
        /// Names in lower case.
        package let headers: [String: String]
        package let body: [UInt8]
        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    package struct Broken: Error, CustomStringConvertible {
        package let description: String
    }

    private let socket: CInt
    /// Waits here and not on the shared threads: many tests wait at once.
    private let queue = DispatchQueue(label: "wire")
    private let unread = Mutex<[UInt8]>([])

    package init(port: Int) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        socket = try Self.connected(AF_INET, address)
    }

    package init(unix path: FilePath) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        socket = try Self.connected(AF_UNIX, address)
    }

    private static func connected<Address>(_ family: CInt, _ address: Address) throws -> CInt {
        let number = Glibc.socket(family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 20 * Patience.factor, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        guard result == 0 else {
            let code = errno
            Glibc.close(number)
            throw SystemError(call: "connect", subject: "a test's server", code: code)
        }
        return number
    }

    deinit { Glibc.close(socket) }

    package func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Throws `EPIPE` or `ECONNRESET` when the other side accepts no more.
    package func send(_ bytes: [UInt8]) async throws {
        try await waiting { [socket] in
            var done = 0
            while done < bytes.count {
                done += try systemCall("send", on: "a test's connection") {
                    bytes.withUnsafeBytes {
                        Glibc.send(socket, $0.baseAddress?.advanced(by: done), $0.count - done, CInt(MSG_NOSIGNAL))
                    }
                }
            }
        }
    }

    /// Ends the sending direction, and continues to read.
    package func endSending() { shutdown(socket, CInt(SHUT_WR)) }

    /// Closes both directions; unread bytes are lost, and the other side may see a reset.
    package func vanish() { shutdown(socket, CInt(SHUT_RDWR)) }

    /// Ends the sending direction and blocks until the other side has closed; what it sends is discarded.
    package func closeAndWait() {
        endSending()
        var bytes = [UInt8](repeating: 0, count: 4096)
        while recv(socket, &bytes, bytes.count, 0) > 0 {}
    }

    /// Whether the other side has closed and nothing is left to read.
    package func isAtEnd() async throws -> Bool {
        if !unread.withLock(\.isEmpty) { return false }
        do { return try await !readMore() } catch let error as SystemError where error.code == ECONNRESET {
            return true
        }
    }

    /// All bytes up to and including `mark`.
    package func read(through mark: String) async throws -> String {
        let mark = Array(mark.utf8)
        while true {
            if let found = unread.withLock({ removePrefix(from: &$0, through: mark) }) {
                return String(decoding: found, as: UTF8.self)
            }
            guard try await readMore() else { throw Broken(description: "closed before \(mark)") }
        }
    }

    /// Exactly this many bytes.
    package func read(count: Int) async throws -> [UInt8] {
        while unread.withLock(\.count) < count {
            guard try await readMore() else { throw Broken(description: "closed before \(count) bytes") }
        }
        return unread.withLock { unread in
            defer { unread.removeFirst(count) }
            return Array(unread.prefix(count))
        }
    }

    /// The next reply. Interim replies (100) are skipped.
    ///
    /// - Parameter isHead: Whether the request was a HEAD, whose reply has no body whatever its headers are.
    package func reply(isHead: Bool = false) async throws -> Reply {
        let lines = try await read(through: "\r\n\r\n").split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, let status = Int(words[1]) else { throw Broken(description: "no status: \(lines)") }
        if status == 100 { return try await reply(isHead: isHead) }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let cut = line.firstIndex(of: ":") else { continue }
            let value = line[cut...].dropFirst().drop { $0 == " " }
            headers[line[..<cut].lowercased()] = String(value)
        }
        var body: [UInt8] = []
        if isHead || status == 204 || status == 304 { return Reply(status: status, headers: headers, body: []) }
        if let length = headers["content-length"].flatMap({ Int($0) }) {
            body = try await read(count: length)
        } else if headers["transfer-encoding"] == "chunked" {
            while true {
                let size = try await read(through: "\r\n").dropLast(1)
                guard let count = Int(size, radix: 16) else { throw Broken(description: "no chunk size: \(size)") }
                body += try await read(count: count)
                _ = try await read(through: "\r\n")
                if count == 0 { break }
            }
        }
        return Reply(status: status, headers: headers, body: body)
    }

    private func waiting<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }

    private func readMore() async throws -> Bool {
        let more = try await waiting { [socket] in
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let got = try systemCall("recv", on: "a test's connection") { recv(socket, &buffer, buffer.count, 0) }
            return Array(buffer.prefix(got))
        }
        unread.withLock { $0 += more }
        return !more.isEmpty
    }
}

private func removePrefix(from bytes: inout [UInt8], through mark: [UInt8]) -> [UInt8]? {
    guard bytes.count >= mark.count else { return nil }
    for start in 0...(bytes.count - mark.count) where bytes[start..<(start + mark.count)].elementsEqual(mark) {
        defer { bytes.removeFirst(start + mark.count) }
        return Array(bytes.prefix(start + mark.count))
    }
    return nil
}
