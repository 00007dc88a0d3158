internal import Glibc
package import Linux
internal import Synchronization

/// A minimal HTTP/1.1 server for cases that real ones do not produce: broken replies, silence, cut connections.
///
/// One thread for each connection; each request is passed to one closure, which answers freely. Ends with its last
/// reference.
package final class FakeServer: Sendable {
    package let port: Int
    /// `http://127.0.0.1:PORT`
    package var url: String { "http://127.0.0.1:\(port)" }
    private let shared: Shared

    /// - Parameter answer: Runs on the connection's thread, and may wait. Throwing, or returning without an answer,
    ///   closes.
    package init(_ answer: @escaping @Sendable (Exchange) throws -> Void) throws {
        let loopback = try Loopback()
        let listener = loopback.descriptor
        port = loopback.port
        let shared = Shared(listener: listener)
        self.shared = shared
        try startThread("fake-accept") {
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0 { break }
                guard shared.add(connection) else {
                    close(connection)
                    break
                }
                let didStart: ()? = try? startThread("fake-serve") {  // no thread: the peer sees a closed connection
                    shared.serve(connection, answer)
                }
                if didStart == nil { shared.drop(connection) }
            }
            shared.closeListener()
        }
    }

    deinit { stop() }

    package func stop() { shared.stop() }

    /// `POST /files`, one for each request so far, in their order.
    package var seen: [String] { shared.state.withLock { $0.seen } }

    /// Whether every request so far has been handled. A server may still read what its client sent before it gave up.
    package var isIdle: Bool { shared.state.withLock { $0.handled == $0.seen.count } }

    /// Connections accepted so far.
    package var connectionCount: Int { shared.state.withLock { $0.accepted } }

    fileprivate final class Shared: Sendable {
        struct State {
            var accepted = 0
            var connections: Set<CInt> = []
            var seen: [String] = []
            var handled = 0
            var isStopped = false
            var isListening = true
        }

        let state = Mutex(State())
        let listener: CInt

        init(listener: CInt) { self.listener = listener }

        func add(_ connection: CInt) -> Bool {
            state.withLock { state in
                state.accepted += 1
                if !state.isStopped { state.connections.insert(connection) }
                return !state.isStopped
            }
        }

        /// Closes under the lock, so that `stop` never closes a descriptor number that was reused.
        func drop(_ connection: CInt) {
            state.withLock { state in
                state.connections.remove(connection)
                _ = close(connection)
            }
        }

        /// Closes under the lock, for the same reason: `accept` may have failed before `stop`.
        func closeListener() {
            state.withLock { state in
                state.isListening = false
                _ = close(listener)
            }
        }

        func stop() {
            state.withLock { state in
                if state.isStopped { return }
                state.isStopped = true
                if state.isListening { shutdown(listener, CInt(SHUT_RDWR)) }
                for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
            }
        }

        func serve(_ connection: CInt, _ answer: @Sendable (Exchange) throws -> Void) {
            defer { drop(connection) }
            var rest: [UInt8] = []
            while let exchange = Exchange(connection, &rest) {
                exchange.number = state.withLock { state in
                    state.seen.append("\(exchange.method) \(exchange.target)")
                    return state.seen.count
                }
                defer { state.withLock { $0.handled += 1 } }
                // An error of the test's closure ends this connection, as a server's fault does.
                guard (try? answer(exchange)) != nil, exchange.isAnswered, !exchange.isCut else { return }
                if exchange.isLast { return exchange.linger() }
                guard exchange.skipBody() else { return }
                rest = exchange.rest
            }
        }
    }
}

/// One request at a ``FakeServer``, with its header read and its body unread. Used only on its connection's thread.
package final class Exchange {
    package fileprivate(set) var number = 0
    package let method: String
    package let target: String
    private let lines: [(name: String, value: String)]
    /// The socket, to read the kernel's figures for it.
    package let connection: CInt
    /// Bytes read from the socket and not used yet.
    fileprivate var rest: [UInt8]
    private var bodyLeft: Int
    private var mustInvite: Bool
    package private(set) var isAnswered = false
    fileprivate var isCut = false
    fileprivate private(set) var isLast = false
    /// Whether the body ended because the peer reset the connection.
    package private(set) var wasReset = false
    /// Whether the peer refused more bytes.
    package private(set) var isGone = false

    fileprivate init?(_ connection: CInt, _ rest: inout [UInt8]) {
        var bytes = rest
        var end: Int?
        while end == nil {
            end = Self.headerEnd(bytes)
            if end == nil {
                guard let more = Self.receive(connection, 64 << 10) else { return nil }
                bytes += more
                // A peer that speaks TLS waits for an answer, and sends no header that could end.
                if bytes.first == 0x16 { return nil }
            }
        }
        guard let end else { return nil }
        let text = String(decoding: bytes[..<end], as: UTF8.self)
        var heads = text.split(separator: "\r\n", omittingEmptySubsequences: true)
        guard !heads.isEmpty else { return nil }
        let first = heads.removeFirst().split(separator: " ")
        guard first.count == 3 else { return nil }
        method = String(first[0])
        target = String(first[1])
        lines = heads.compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
        self.connection = connection
        self.rest = Array(bytes[end...])
        bodyLeft = lines.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        mustInvite = lines.contains { $0.name == "expect" }
    }

    /// The kernel's counters at this end of the connection.
    package var counts: SocketCounts? { Sockets.counts(connection) }

    package func header(_ name: String) -> String? { lines.first { $0.name == name.lowercased() }?.value }
    package var headerNames: [String] { lines.map(\.name) }

    /// At most `count` bytes of the body, fewer at its end or when the peer is gone.
    package func body(_ count: Int = .max) -> [UInt8] {
        var got: [UInt8] = []
        while got.count < count {
            let more = piece(count - got.count)
            if more.isEmpty { break }
            got += more
        }
        return got
    }

    /// The next bytes of the body, at most `count`; none at its end or when the peer is gone.
    package func piece(_ count: Int) -> [UInt8] {
        if mustInvite { raw("HTTP/1.1 100 Continue\r\n\r\n") }
        mustInvite = false
        guard bodyLeft > 0 else { return [] }
        if rest.isEmpty {
            guard let more = Self.receive(connection, min(256 << 10, count)) else {
                // The kernel reports it once; a later read meets an ordinary end.
                if errno == ECONNRESET { wasReset = true }
                return []
            }
            rest = more
        }
        let taken = Array(rest.prefix(min(bodyLeft, count)))
        bodyLeft -= taken.count
        rest.removeFirst(taken.count)
        return taken
    }

    package func reply(_ status: Int, _ headers: [(String, String)] = [], _ body: String = "") {
        isAnswered = true
        let lines = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
        let length = status == 204 ? "" : "Content-Length: \(body.utf8.count)\r\n"
        raw("HTTP/1.1 \(status) Whatever\r\n\(lines)\(length)\r\n\(method == "HEAD" ? "" : body)")
    }

    /// Sends bytes unchanged.
    package func raw(_ text: String) { raw(Array(text.utf8)) }

    /// The same for bytes that are no text; counts as an answer.
    package func answer(_ bytes: [UInt8]) {
        isAnswered = true
        raw(bytes)
    }

    private func raw(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let sent = bytes.withUnsafeBytes {
                send(connection, $0.baseAddress?.advanced(by: done), bytes.count - done, CInt(MSG_NOSIGNAL))
            }
            if sent <= 0 {
                isGone = true
                return
            }
            done += sent
        }
    }

    /// Closes the connection now; with a reset, so that the peer's bytes in flight are refused.
    package func cut(reset: Bool = false) {
        isCut = true
        if reset { Sockets.resetOnClose(connection) }
        if !reset { shutdown(connection, CInt(SHUT_RDWR)) }
    }

    /// Closes the connection after the answer that was given, which the peer can read.
    package func closeAfterwards() { isLast = true }

    /// Reads until the peer closes. Closing a socket with unread bytes resets the connection, and the peer may lose the
    /// answer to that.
    fileprivate func linger() {
        shutdown(connection, CInt(SHUT_WR))
        while Self.receive(connection, 64 << 10) != nil {}
    }

    /// Reads nothing and sends nothing until the peer or the server closes.
    package func hang() {
        isCut = true
        hold { false }
    }

    /// Sends nothing until `isOver` or the peer or the server closes.
    package func hold(until isOver: () -> Bool) {
        var status = pollfd(fd: connection, events: Int16(POLLRDHUP_), revents: 0)
        while !isOver(), poll(&status, 1, 5) == 0 || status.revents & Int16(POLLRDHUP_ | POLLHUP_ | POLLERR_) == 0 {
            status.revents = 0
        }
    }

    fileprivate func skipBody() -> Bool {
        // A client that still waits for `100 Continue` sends no body.
        if mustInvite { return false }
        _ = body()
        return bodyLeft == 0
    }

    private static func headerEnd(_ bytes: [UInt8]) -> Int? {
        let mark: [UInt8] = [13, 10, 13, 10]
        guard bytes.count >= 4 else { return nil }
        for index in 0...(bytes.count - 4) where bytes[index] == 13 && Array(bytes[index..<index + 4]) == mark {
            return index + 4
        }
        return nil
    }

    private static func receive(_ connection: CInt, _ count: Int) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        errno = 0
        let got = recv(connection, &buffer, count, 0)
        return got > 0 ? Array(buffer[..<got]) : nil
    }
}

// poll(2): POLLRDHUP needs _GNU_SOURCE, which Swift's Glibc module is built without.
private let POLLRDHUP_: CInt = 0x2000
private let POLLHUP_: CInt = 0x10
private let POLLERR_: CInt = 0x8
