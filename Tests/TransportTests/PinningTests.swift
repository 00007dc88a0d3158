import Core
import Dispatch
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Binding to interfaces", .timeLimit(.minutes(Patience.minutes(1))))
struct PinningTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    private func failure(_ request: Request) async -> TransportError? {
        await #expect(throws: TransportError.self) { try await transport.send(request) }
    }

    @Test(
        "an unusable interface fails the request without sending; no other interface is used",
        arguments: ["nope0", "", "lo0123456789abcdefghij", "LO"])
    func missing(_ name: String) async throws {
        let server = try FakeServer { $0.reply(200) }
        let error = await failure(Request("GET", server.url, interface: name))
        #expect(error?.kind == .interface)
        #expect(error?.detail.contains("`\(name)`") == true)
        #expect(error?.bytesOnWire == 0)
        #expect(server.connectionCount == 0)
    }

    @Test("a kept connection serves only requests of the same interface")
    func pools() async throws {
        let server = try FakeServer { $0.reply(200) }
        for interface in [nil, "lo", nil, "lo", nil, "lo"] {
            _ = try await transport.send(Request("GET", server.url, interface: interface))
        }
        #expect(server.connectionCount == 2)
    }

    @Test("a connection from a lost address is reported or ended, and not reused")
    func lostAddress() async throws {
        let gate = DispatchSemaphore(value: 0)
        let server = try FakeServer { exchange in
            if exchange.target == "/long" { gate.wait() }
            exchange.reply(200)
        }
        let here = try #require(IPAddress("127.0.0.1"))
        let isTold = Mutex(false)
        _ = try await transport.send(Request("GET", server.url))
        transport.removeAddresses(addresses: [try #require(IPAddress("127.0.0.2"))])
        _ = try await transport.send(Request("GET", server.url))
        #expect(server.connectionCount == 1)
        transport.removeAddresses(addresses: [here])
        _ = try await transport.send(Request("GET", server.url))
        #expect(server.connectionCount == 2)

        let alone = Task { await failure(Request("GET", server.url + "/long")) }
        var request = Request("GET", server.url + "/long")
        request.onAddressLost = { isTold.withLock { $0 = true } }
        let told = Task { [request] in await failure(request) }
        try await eventually("the server has received both requests") {
            server.seen.filter { $0 == "GET /long" }.count == 2
        }
        transport.removeAddresses(addresses: [here])
        let error = try #require(await alone.value)
        #expect(error.kind == .reset && error.detail.contains("no longer an address of this machine"))
        try await eventually("the other request has been informed") { isTold.withLock { $0 } }
        told.cancel()
        #expect(await told.value?.kind == .cancelled)
        for _ in 0..<2 { gate.signal() }
    }

    @Test("closing an interface ends its requests and kept connections, and no others")
    func closes() async throws {
        let gate = DispatchSemaphore(value: 0)
        let wasReset = Mutex<Bool?>(nil)
        let server = try FakeServer { exchange in
            guard exchange.target == "/long" else { return exchange.reply(200) }
            _ = exchange.piece(1000)
            gate.wait()
            while !exchange.piece(256 << 10).isEmpty {}
            if exchange.wasReset { wasReset.withLock { $0 = true } } else { exchange.reply(204) }
        }
        let path = try folder.write("video", noise(32 << 20))
        func long(_ interface: String?) -> Task<Result<Response, TransportError>, Never> {
            let request = Request(
                "PATCH", server.url + "/long", headers: [("Expect", "")],
                body: .file(.path(path), offset: 0, count: 32 << 20),
                interface: interface)
            return Task { [transport] in
                do throws(TransportError) { return .success(try await transport.send(request)) } catch {
                    return .failure(error)
                }
            }
        }
        // One kept connection of each kind, and an upload over each.
        async let first = transport.send(Request("GET", server.url, interface: "lo"))
        async let second = transport.send(Request("GET", server.url))
        _ = try await (first, second)
        let (pinned, free) = (long("lo"), long(nil))
        try await eventually("the server has received both uploads") {
            server.seen.filter { $0 == "PATCH /long" }.count == 2
        }
        for interface in [nil, "lo"] { _ = try await transport.send(Request("GET", server.url, interface: interface)) }
        #expect(server.connectionCount == 4)

        await transport.close(interface: "lo")
        guard case .failure(let error) = await pinned.value else {
            Issue.record("the pinned request did not end")
            return
        }
        #expect(error.kind == .interface && error.bytesOnWire > 0)
        for _ in 0..<2 { gate.signal() }
        #expect(try await free.value.get().status == 204)
        #expect(try await eventually("the server has noticed the end") { wasReset.withLock { $0 } })
        // The connections without an interface are still there, and for this interface a new one is made.
        _ = try await transport.send(Request("GET", server.url))
        #expect(server.connectionCount == 4)
        #expect(try await transport.send(Request("GET", server.url, interface: "lo")).status == 200)
        #expect(server.connectionCount == 5)
    }

    @Test("closing an unused interface, and closing after the end, do nothing")
    func closesNothing() async throws {
        await transport.close(interface: "lo")
        let server = try FakeServer { $0.reply(200) }
        _ = try await transport.send(Request("GET", server.url, interface: "lo"))
        await transport.close(interface: "eth9")
        await transport.stop()
        await transport.close(interface: "lo")
        #expect(await failure(Request("GET", server.url, interface: "lo"))?.kind == .cancelled)
    }

    @Test("requests and closings in any order end, each once", arguments: 0..<5)
    func storm(_ seed: UInt64) async throws {
        let server = try FakeServer {
            _ = $0.body()
            $0.reply(200)
        }
        var dice = Dice(seed: seed)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<60 {
                let interface = ["lo", nil, "nope0"].randomElement(using: &dice) ?? nil
                let size = Int.random(in: 0...300_000, using: &dice)
                group.addTask { [transport] in
                    if index % 10 == 9 { return await transport.close(interface: "lo") }
                    do throws(TransportError) {
                        let response = try await transport.send(
                            Request("PATCH", server.url, body: .bytes(noise(size)), interface: interface))
                        #expect(response.bytesSent == Int64(size) && interface != "nope0")
                    } catch { #expect(error.kind == .interface && interface != nil, "\(error)") }
                }
            }
        }
        await transport.stop()
    }

    @Test(
        "bytes use the requested interface, even if the route leads over another",
        .enabled(if: OtherNetwork.isPossible, "a network of its own needs root and ip(8)"))
    func otherInterface() async throws {
        try await OtherNetwork().run {
            let server = try FakeServer { $0.reply(200) }
            let transport = Transport()
            _ = try await transport.send(Request("GET", server.url, interface: "lo"))
            _ = try await transport.send(Request("GET", server.url))
            #expect(server.connectionCount == 2)
            let before = try OtherNetwork.sent(by: "lo")
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(
                    Request("GET", server.url, limits: Limits(connect: .seconds(1)), interface: "sluice0"))
            }
            #expect(error?.kind == .connect)
            #expect(server.connectionCount == 2)
            #expect(try OtherNetwork.sent(by: "lo") == before, "no packet leaves over the interface of the route")
        }
    }

    @Test(
        "the charge is never below the interface's counter, and not far above it",
        .enabled(if: OtherNetwork.isPossible, "a network of its own needs root and ip(8)"))
    func againstInterface() async throws {
        try await OtherNetwork().run {
            let ofServer = Mutex<SocketCounts?>(nil)
            let server = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(204)
                guard exchange.header("x-number") == "4" else { return }
                // Counted at the end of the connection: the kernel may still repeat the answer after the call that
                // sends it.
                exchange.hang()
                ofServer.withLock { $0 = exchange.counts }
            }
            let transport = Transport()
            let before = try OtherNetwork.sent(by: "lo")
            var charged: Int64 = 0
            for number in 0..<5 {
                charged += try await transport.send(
                    Request("PATCH", server.url, headers: [("X-Number", "\(number)")], body: .bytes(noise(300_000)))
                ).bytesOnWire
            }
            await transport.stop()
            #expect(server.connectionCount == 1)
            // Both directions use the same interface: the server's part is known from its own socket.
            let counts = try await eventually("the server has noticed the end") { ofServer.withLock { $0 } }
            let back = counts.sent + counts.segments * counts.header
            let carried = try OtherNetwork.sent(by: "lo") - before
            #expect(charged + back >= carried - 4 * 60, "only the server's last acknowledgements may be missing")
            #expect(Double(charged) <= 1.02 * Double(carried - back) + 300)
        }
    }
}

/// A network namespace for one thread, and for those that it starts: with `lo`, and `sluice0`, which leads nowhere. It
/// is gone with its last thread and socket.
private final class OtherNetwork: TaskExecutor {
    private struct State {
        var isThere: Bool?
        var isOver = false
        var jobs: [UnownedJob] = []
    }

    private let state = Mutex(State())
    private let news = DispatchSemaphore(value: 0)

    struct Impossible: Error {}

    static let isPossible: Bool = {
        guard let network = try? OtherNetwork() else { return false }
        network.end()
        return true
    }()

    init() throws {
        let ready = DispatchSemaphore(value: 0)
        try startThread("other-network") {
            let isThere = Self.leave()
            self.state.withLock { $0.isThere = isThere }
            ready.signal()
            if isThere { self.serve() }
        }
        ready.wait()
        guard state.withLock({ $0.isThere }) == true else { throw Impossible() }
    }

    /// Runs `body`, its children and every thread that they start in this network.
    func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        defer { end() }
        try await Task(executorPreference: self, operation: body).value
    }

    /// Bytes of IP packets that an interface of the calling thread's network has sent.
    static func sent(by interface: String) throws -> Int64 {
        // `/proc/net` would be the one of the process.
        let text = String(decoding: try Files.read("/proc/thread-self/net/dev", limit: 64 << 10), as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.drop { $0 == " " }.hasPrefix(interface + ":") })
        let fields = line.drop { $0 != ":" }.dropFirst().split(separator: " ").compactMap { Int64($0) }
        // Each packet counts with 14 bytes of Ethernet header, on `lo` too.
        return fields[8] - 14 * fields[9]
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        news.signal()
    }

    private func end() {
        state.withLock { $0.isOver = true }
        news.signal()
    }

    private func serve() {
        while true {
            news.wait()
            let (job, isOver) = state.withLock { ($0.jobs.isEmpty ? nil : $0.jobs.removeFirst(), $0.isOver) }
            if let job { job.runSynchronously(on: asUnownedTaskExecutor()) } else if isOver { return }
        }
    }

    /// Moves the calling thread into a network namespace of its own. unshare(2) needs _GNU_SOURCE, which Swift's Glibc
    /// module is built without.
    private static func leave() -> Bool {
        typealias Unshare = @convention(c) (CInt) -> CInt
        guard let symbol = dlsym(nil, "unshare") else { return false }
        let network: CInt = 0x4000_0000  // CLONE_NEWNET
        guard unsafeBitCast(symbol, to: Unshare.self)(network) == 0 else { return false }
        return system(
            "(ip link set lo up && ip link add sluice0 type veth peer name sluice1 && ip addr add 10.98.76.1/24 dev sluice0 "
                + "&& ip link set sluice0 up && ip link set sluice1 up) >/dev/null 2>&1") == 0
    }
}
