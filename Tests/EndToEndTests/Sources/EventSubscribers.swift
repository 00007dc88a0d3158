import Core
import Dispatch
import Glibc
import Linux
import Synchronization

/// Many clients that follow the events at once, over one thread: each with a connection of its own, which is read or
/// left unread.
///
/// A client that reads and whose stream ends, as it does when the client is too far behind, connects again with the
/// number of its last event. ``leave()`` has to be called.
///
/// `@unchecked Sendable`, proof: all other state that the reading thread changes is in `found`, protected by a lock. The
/// descriptors are made in `init` before the thread starts. From then on only the thread replaces them, until `leave`
/// closes them after its end; without a thread nothing replaces them.
final class EventSubscribers: @unchecked Sendable {
    /// The answer that one of them received.
    struct Reader: Sendable {
        /// The first line of the answer.
        var status = ""
        /// Numbers of the events, by their type, in the order of arrival.
        var seen: [String: [Int64]] = [:]
        /// How often its stream ended, and it connected again.
        var reconnections = 0
        fileprivate var wasAccepted = false
        fileprivate var number: Int64 = -1
        fileprivate var rest: [UInt8] = []
        /// Where the next search for the end of an event begins.
        fileprivate var searched = 0
    }

    private var sockets: [CInt] = []
    private let found: Mutex<[Reader]>
    private let isOver = Atomic(false)
    private let done = DispatchSemaphore(value: 0)
    private let readsAll: Bool
    private let path: FilePath
    private let target: String

    /// Connects `count` times and asks for `target`; reads from then on if `reads`.
    init(_ count: Int, at path: FilePath, target: String, reads: Bool) throws {
        found = Mutex(Array(repeating: Reader(), count: count))
        readsAll = reads
        self.path = path
        self.target = target
        for _ in 0..<count { sockets.append(try Self.request(target, at: path)) }
        guard reads else { return }
        try startThread("crowd") { [self] in
            while !isOver.load(ordering: .relaxed) { read() }
            done.signal()
        }
    }

    /// Closes every connection.
    func leave() {
        guard !sockets.isEmpty else { return }
        isOver.store(true, ordering: .relaxed)
        if readsAll { done.wait() }
        for socket in sockets { close(socket) }
        sockets = []
    }

    var readers: [Reader] { found.withLock { $0 } }

    /// The number of unread connections with an answer waiting.
    var answered: Int {
        sockets.count { socket in
            var byte: UInt8 = 0
            return recv(socket, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) == 1
        }
    }

    /// Whether each has received this many events of these types.
    func haveAll(_ count: Int, of types: Set<String>) -> Bool {
        found.withLock { readers in
            readers.allSatisfy { reader in types.reduce(0) { $0 + (reader.seen[$1]?.count ?? 0) } >= count }
        }
    }

    private func read() {
        var entries = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&entries, nfds_t(entries.count), 50) > 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        for (index, entry) in entries.enumerated() where entry.revents != 0 {
            let got = recv(entry.fd, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            if got > 0 {
                found.withLock { $0[index].take(buffer[..<got]) }
            } else if got == 0 {
                // A descriptor at its end, of a refused client, is readable for ever: it is only tried again together
                // with the others.
                if !connectAgain(index) { usleep(1000) }
            }
        }
    }

    /// Continues an ended stream after its last event.
    private func connectAgain(_ index: Int) -> Bool {
        guard let since = found.withLock({ $0[index].lastEvent }),
            let socket = try? Self.request(target + (target.contains("?") ? "&" : "?") + "since=\(since)", at: path)
        else { return false }
        close(sockets[index])
        sockets[index] = socket
        found.withLock { $0[index].beginAgain() }
        return true
    }

    private static func request(_ target: String, at path: FilePath) throws -> CInt {
        let socket = try connected(path)
        let request = Array("GET \(target) HTTP/1.1\r\nHost: sluice\r\n\r\n".utf8)
        do {
            try systemCall("send", on: "a subscriber") { send(socket, request, request.count, CInt(MSG_NOSIGNAL)) }
        } catch {
            close(socket)
            throw error
        }
        return socket
    }

    private static func connected(_ path: FilePath) throws -> CInt {
        let number = try systemCall("socket", on: "a subscriber") {
            socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            let code = errno
            close(number)
            throw SystemError(call: "connect", subject: path.display, code: code)
        }
        return number
    }
}

extension EventSubscribers.Reader {
    /// Where a client continues that was once accepted. It may be refused again while the daemon has not yet noticed the
    /// end of its earlier connection.
    fileprivate var lastEvent: Int64? { wasAccepted && number >= 0 ? number : nil }

    fileprivate mutating func beginAgain() {
        reconnections += 1
        status = ""
        rest = []
        searched = 0
    }

    /// Chunks of the encoding do not cut events, and their lines do not look like those of an event: they are skipped.
    fileprivate mutating func take(_ piece: ArraySlice<UInt8>) {
        let bytes = rest + piece
        var start = 0
        // With memchr(3): hundreds of readers receive gigabytes, and an unoptimized loop over bytes would be what they
        // wait for.
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            while let end = memchr(base + searched, CInt(UInt8(ascii: "\n")), bytes.count - searched) {
                let newline = base.distance(to: UnsafeRawPointer(end))
                takeLine(String(decoding: bytes[start..<min(newline, start + 64)], as: UTF8.self))
                (start, searched) = (newline + 1, newline + 1)
            }
        }
        rest = Array(bytes[start...])
        searched = rest.count
    }

    private mutating func takeLine(_ line: String) {
        if status.isEmpty {
            status = String(line.prefix { $0 != "\r" && $0 != "\r\n" })
            if status == "HTTP/1.1 200 OK" { wasAccepted = true }
        }
        if line.hasPrefix("id: ") {
            number = Int64(line.dropFirst(4)) ?? -1
        } else if line.hasPrefix("event: ") {
            seen[String(line.dropFirst(7)), default: []].append(number)
        }
    }
}
