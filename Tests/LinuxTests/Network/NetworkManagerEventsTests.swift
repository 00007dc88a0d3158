import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("D-Bus connection", .serialized, .timeLimit(.minutes(Patience.minutes(2))))
struct NetworkManagerEventsTests {
    private static var isPossible: ConditionTrait {
        .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value }
    }

    @Test("a missing bus is reported once, and its path is watched until it appears")
    func none() async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("run/dbus/bus")
        let listening = try Listening("unix:path=\(socket.display)")
        let report = try await listening.until("the missing bus is reported") { $0.trouble != nil }
        #expect(report.trouble == "D-Bus: connect \(socket.display): No such file or directory")
        #expect(!report.networkManager.isRunning && !report.modemManager.isRunning)
        for number in 0..<10 { try folder.write(FilePath("run/other \(number)"), []) }
        for number in 0..<10 { try folder.write(FilePath("run/dbus/other \(number)"), []) }
        // Without a socket there is no time at which the connection would be tried without an event.
        let other = try OtherEnd(at: socket)
        try await other.accept()
        #expect(listening.count == 1)
        try await listening.stop()
    }

    @Test("a bus path created during the search is not missed")
    func race() async throws {
        for _ in 0..<30 {
            let folder = TemporaryFolder()
            let socket = folder.path.appending("run/dbus/bus")
            let listening = try Listening("unix:path=\(socket.display)")
            try folder.write("run/dbus/other", [])
            let other = try OtherEnd(at: socket)
            try await other.accept()
            try await listening.stop()
        }
    }

    @Test(
        "an invalid address is reported",
        arguments: ["", "tcp:host=localhost,port=1", "unix:path=%zz", "unix:", ";;,="])
    func address(_ address: String) async throws {
        let listening = try Listening(address)
        let report = try await listening.until("the trouble is reported") { $0.trouble != nil }
        #expect(report.trouble?.contains("names no Unix socket") == true)
        try await listening.stop()
    }

    @Test("addresses are parsed as D-Bus writes them")
    func addresses() {
        #expect(
            BusAddress.parse("unix:path=/run/a%20b,guid=1;tcp:host=a;unix:guid=2,abstract=/tmp/x") == [
                BusAddress(name: Array("/run/a b".utf8), isAbstract: false),
                BusAddress(name: Array("/tmp/x".utf8), isAbstract: true),
            ])
        #expect(BusAddress.parse("unix:path=/a%2") == [])
        #expect(BusAddress.parse("unix:path=/a%00b") == [])
        #expect(BusAddress.parse("unix:path=") == [])
    }

    @Test("a bus that appears later is found, and so is a restarted one", isPossible)
    func laterBus() async throws {
        let bus = try await PrivateBus()
        let waiting = try Listening(bus.address)
        try await waiting.until("the missing bus is reported") { $0.trouble != nil }
        try await bus.start()
        let manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('eth0', 1)")
        try await waiting.until("eth0", is: .yes)
        #expect(waiting.report?.trouble == nil)
        try await waiting.stop()

        let listening = try Listening(bus.address)
        try await listening.until("eth0", is: .yes)
        bus.stop()
        let gone = try await listening.until("the loss of the bus is reported") {
            $0.trouble != nil && !$0.networkManager.isRunning
        }
        #expect(gone.metered("eth0") == .yes)
        manager.end()
        try await bus.start()
        try await listening.until("the trouble has ended") { $0.trouble == nil }
        let again = try await bus.play(.networkManager)
        try await again.runLine("add_device('eth0', 2)")
        try await listening.until("eth0", is: .no)
        try await listening.stop()
    }

    @Test(
        "missing services on a bus are reported, none is started, and a later one is noticed", isPossible
    )
    func laterService() async throws {
        let bus = try await PrivateBus()
        for name in ["org.freedesktop.NetworkManager", "org.freedesktop.ModemManager1"] {
            let service = "[D-BUS Service]\nName=\(name)\nExec=/usr/bin/touch \(bus.services.display)/started\n"
            let file = try Descriptor.open(bus.services.appending(FilePath("\(name).service")), for: .creating)
            try file.write(Array(service.utf8), named: bus.services)
        }
        try await bus.start()
        let listening = try Listening(bus.address)
        let report = try await listening.until("a first report has come") { _ in true }
        #expect(report == NetworkReport())
        listening.events.checkAgain()
        let modems = try await bus.play(.modemManager)
        try await listening.until("ModemManager runs") { $0.modemManager.isRunning }
        let manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('eth0', 4)")
        try await listening.until("eth0", is: .guessedNo)
        #expect(try FileStatus.ifPresent(at: bus.services.appending("started")) == nil)
        try await listening.stop()
        withExtendedLifetime(modems) {}
    }

    @Test(
        "a bus that refuses access, or is no bus, is reported and tried again",
        arguments: ["REJECTED EXTERNAL\r\n", "HTTP/1.1 400\r\n"])
    func refusal(_ greeting: String) async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("bus")
        let other = try OtherEnd(at: socket)
        let listening = try Listening("unix:path=\(socket.display)")
        for _ in 0..<3 {
            try await other.accept()
            other.say(Array(greeting.utf8))
        }
        let report = try await listening.until("the trouble is reported") {
            $0.trouble?.contains("rejects this user") == true
        }
        #expect(report.trouble?.contains(greeting.prefix(8)) == true)
        try await listening.stop()
    }

    @Test("a silent bus is disconnected")
    func silentBus() async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("bus")
        let other = try OtherEnd(at: socket)
        let listening = try Listening("unix:path=\(socket.display)", timeout: .milliseconds(50))
        for _ in 0..<3 { try await other.accept() }
        try await listening.until("the trouble is reported") { $0.trouble == "D-Bus: it does not answer" }
        try await listening.stop()
    }

    @Test("after a stop or cancellation, thread and connection are gone", isPossible)
    func end() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let (here, nowhere) = (try Listening(bus.address), try Listening("unix:path=/nowhere/at/all"))
        try await here.until("a first report has come") { _ in true }
        try await nowhere.until("a first report has come") { _ in true }
        let threads = [here.thread, nowhere.thread]
        let open = try sockets(to: bus.socket)
        #expect(open == 1)
        try await here.stop()
        try await nowhere.cancel()
        // The bus closes its end once it has noticed that ours is closed.
        try await eventually("the connection has been closed") { try sockets(to: bus.socket) == 0 }
        try await eventually("the threads have ended") {
            try threads.allSatisfy { try FileStatus.ifPresent(at: FilePath("/proc/self/task/\($0)")) == nil }
        }
    }

    /// Connections of the bus to other processes: those that the kernel lists under its name, except the listening
    /// socket.
    private func sockets(to socket: FilePath) throws -> Int {
        let table = String(decoding: try Files.read("/proc/net/unix", limit: 16 << 20), as: UTF8.self)
        return table.split(separator: "\n").count { $0.hasSuffix(" \(socket.display)") } - 1
    }
}

/// A listening Unix socket that sends given bytes to each client.
private final class OtherEnd {
    private let listening: CInt
    private var connection: CInt = -1

    init(at path: FilePath) throws {
        listening = try systemCall("socket", on: path.display) {
            socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        }
        // The socket gets its name only when it listens: a client that finds a name without a listener is refused.
        let early = path.parent.appending("early")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: early.bytes) }
        try systemCall("bind", on: path.display) {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listening, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        try systemCall("listen", on: path.display) { listen(listening, 8) }
        try Files.rename(early, to: path)
    }

    deinit { for number in [listening, connection] where number >= 0 { close(number) } }

    /// Accepts the next client, and drops the earlier one.
    func accept() async throws {
        if connection >= 0 { close(connection) }
        connection = try await eventually("a client connects") {
            let number = Glibc.accept(listening, nil, nil)
            return number >= 0 ? number : nil
        }
    }

    func say(_ bytes: [UInt8]) {
        // A client that has left already receives nothing, which is the purpose of the test.
        _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
