import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// Limits with conditions. The kernel's packet filter counts the bytes sent over each of two routes.
@Suite(
    "Limits with conditions, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct ConditionalLimitEndToEndTests {
    private typealias Scene = NetworkEndToEndTests.Scene

    private struct Usage: Decodable {
        struct Quota: Decodable {
            let name: String?
            let used: Int64
            let reserved: Int64
        }
        let quotas: [Quota]
    }

    private static let router = "0c:5b:8f:27:9a:64"

    /// None of the networks is metered, so that only names tell them apart.
    private func scene(_ policy: String...) async throws -> Scene {
        try await Scene(
            policy,
            rules: "[{name: cable, interface: wan0, metered: false}, {name: lte, interface: lte0, metered: false}]")
    }

    private func used(_ name: String, in scene: Scene) async throws -> Int64 {
        try await eventually("the usage of \(name) is known, and nothing is reserved") {
            guard let text = try await scene.fixture.runVerb("usage", ["--json"]) else { return nil }
            let quotas = try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas
            return quotas.first { $0.name == name && $0.reserved == 0 }?.used
        }
    }

    private func reload(_ scene: Scene, _ change: (String) -> String) async throws {
        scene.fixture.policyKeys = scene.fixture.policyKeys.map(change)
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
    }

    @Test("a limit joins a running transfer when its condition begins to hold, and leaves it when it ends")
    func flip() async throws {
        let scene = try await scene(
            "bandwidth: [4 MB/s, {name: guest, limit: 100 kB/s, when: {gateway: \"\(Self.router)\"}}]")
        try await scene.ip("link", "set", "lte0", "down")
        try await scene.router(is: "02:00:00:00:00:77")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun(4_000_000)
        try await scene.router(is: Self.router)
        let path = scene.fixture.drop.appending("clip.mp4").display
        try await eventually("the limit is shown") {
            try await scene.fixture.runVerb("why", [path])?.contains("rule `guest`")
        }
        // What was in flight before leaves at once; from then on the limit is kept.
        let clock = ContinuousClock()
        var (before, start) = (try await scene.bytes("wan"), clock.now)
        try await eventually("the limited transfer goes on") { try await scene.bytes("wan") > before + 100_000 }
        (before, start) = (try await scene.bytes("wan"), clock.now)
        try await eventually("more bytes have been sent") { try await scene.bytes("wan") > before + 300_000 }
        let rate = Double(try await scene.bytes("wan") - before) / start.duration(to: clock.now).inSeconds
        #expect(rate < 140_000, "\(rate) B/s")
        try await scene.router(is: "02:00:00:00:00:77")
        try await scene.arrives()
        // No request began again.
        #expect(try await scene.bytes("wan") < 33_000_000)
    }

    @Test(
        "a quota about one network ends there, keeps its count over edits and kills, and leaves the other network alone"
    )
    func quota() async throws {
        let scene = try await scene("quotas: [{name: lte-plan, per: month, bytes: 1 MB, when: {network: lte}}]")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 6_000_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "quota")
        #expect(
            hold.text.contains("the quota `lte-plan` of policy (sluice.yaml:")
                && hold.text.contains("1 MB a month while the network is lte"), "\(hold.text)")
        let first = try await used("lte-plan", in: scene)
        let paid = try await scene.bytes("lte")
        #expect(paid > 500_000 && paid <= 1_000_000)
        #expect(first >= paid && first <= 1_000_000)
        // More bytes, and another condition for the same network.
        try await reload(scene) {
            $0.replacing("1 MB, when: {network: lte}", with: "2 MB, when: {interface: \"lte*\"}")
        }
        try await eventually("the rest of the quota is sent") { try await scene.bytes("lte") > paid + 500_000 }
        _ = try await scene.waits("clip.mp4", for: "quota")
        let second = try await used("lte-plan", in: scene)
        #expect(second > first && second <= 2_000_000)
        scene.fixture.killDaemon()
        try scene.fixture.startDaemon()
        _ = try await scene.waits("clip.mp4", for: "quota")
        let third = try await used("lte-plan", in: scene)
        #expect(third >= second && third <= 2_000_000)
        let all = try await scene.bytes("lte")
        #expect(all <= 2_000_000)
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 200) }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == all)
        #expect(try await scene.bytes("wan") > 3_500_000)
        #expect(try await used("lte-plan", in: scene) == third)
    }

    @Test("while a quota of the kernel's route is used up, an equal route without one is taken")
    func otherRoute() async throws {
        let scene = try await scene("quotas: [{name: lte-plan, per: month, bytes: 0, when: {network: lte}}]")
        let roads = scene.roads
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            try roads.addRoute("lte", metric: 1)
        }
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 1_000_000, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 1_000_000)
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("a transfer that comes under a quota is charged to it from then on, and ends with it")
    func underWay() async throws {
        let scene = try await scene(
            "bandwidth: 2 MB/s",
            "quotas: [{name: guest, per: month, bytes: 3 MB, when: {gateway: \"\(Self.router)\"}}]")
        try await scene.ip("link", "set", "lte0", "down")
        try await scene.router(is: "02:00:00:00:00:77")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun(4_000_000)
        #expect(try await used("guest", in: scene) == 0)
        let before = try await scene.bytes("wan")
        try await scene.router(is: Self.router)
        _ = try await scene.waits("clip.mp4", for: "quota")
        let charged = try await used("guest", in: scene)
        let sent = try await scene.bytes("wan") - before
        // What left between the reading and the flip was not charged; the rest was, and ends with the quota.
        #expect(charged > 1_000_000 && charged <= 3_000_000)
        #expect(sent < charged + 3_000_000)
        try await scene.router(is: "02:00:00:00:00:77")
        try await scene.arrives()
        #expect(try await used("guest", in: scene) == charged)
    }

    @Test("at most one upload at once over one network, and as many as ever over the other one")
    func slots() async throws {
        let scene = try await scene("bandwidth: 300 kB/s")
        scene.fixture.destinationKeys = ", concurrency: [{at_most: 3}, {at_most: 1, when: {network: lte}}]"
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        for number in 0..<3 {
            try scene.camera.drop(Clip(number: number, size: 1_500_000, relative: FilePath("clip\(number).mp4")))
        }
        func uploading() async throws -> Int {
            let text = try await scene.fixture.runVerb("list", ["--state", "uploading", "--json"]) ?? ""
            return text.split(separator: "\"state\":\"uploading\"", omittingEmptySubsequences: false).count - 1
        }
        try await eventually("bytes are sent") { try await scene.bytes("lte") > 400_000 }
        #expect(try await uploading() == 1)
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await eventually("others run over the other network") { try await uploading() > 1 }
        try await scene.arrives()
    }

    /// Another program sends datagrams over `lte`.
    private func others(send bytes: Int, _ scene: Scene) async throws {
        let roads = scene.roads
        try await blocking {
            let (receiver, port) = try roads.site.run { try Datagrams.open("10.2.0.1") }
            defer { close(receiver) }
            try roads.box.run { try Datagrams.send(bytes, to: "10.2.0.1", port) }
        }
    }

    @Test("a quota of all programs counts what others carry over its interface, also while the daemon is not there")
    func allPrograms() async throws {
        let scene = try await scene(
            "quotas: [{name: lte-plan, per: month, bytes: 4 MB, count: interface, when: {network: lte}}]")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        // Nothing is sent before the first reading, which begins the count.
        try scene.camera.drop(Clip(number: 0, size: 1_000, relative: "first.mp4"))
        try await scene.completes("first.mp4")
        let start = try await blocking { try roads.carried(by: "lte0") }
        try await others(send: 1_500_000, scene)
        try await eventually("the bytes of others are counted") { try await used("lte-plan", in: scene) >= 1_500_000 }
        scene.fixture.killDaemon()
        try await others(send: 500_000, scene)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 1, size: 6_000_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "quota")
        #expect(hold.text.contains("4 MB of all programs a month while the network is lte"), "\(hold.text)")
        let carried = try await blocking { try roads.carried(by: "lte0") } - start
        #expect(carried > 3_000_000 && carried <= 4_000_000)
        let sent = try await scene.bytes("lte")
        #expect(sent > 800_000 && sent < 2_000_000)
        // Until the next reading, the count has our own bytes without the headers of the link.
        try await eventually("everything that was carried is counted") {
            try await used("lte-plan", in: scene) >= carried
        }
        #expect(try await used("lte-plan", in: scene) <= 4_000_000)
    }

    @Test("what others use up of a quota of all programs stops a running upload soon")
    func usedUpByOthers() async throws {
        let scene = try await scene(
            "quotas: [{name: lte-plan, per: month, bytes: 20 MB, count: interface, when: {network: lte}}]",
            "bandwidth: 1 MB/s")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 1_000, relative: "first.mp4"))
        try await scene.completes("first.mp4")
        let start = try await blocking { try roads.carried(by: "lte0") }
        try scene.camera.drop(Clip(number: 1, size: 30_000_000, relative: "clip.mp4"))
        try await eventually("bytes have left") { try await scene.bytes("lte") > 500_000 }
        try await others(send: 20_000_000, scene)
        let before = try await scene.bytes("lte")
        _ = try await scene.waits("clip.mp4", for: "quota")
        let after = try await scene.bytes("lte")
        #expect(after - before < 4_000_000, "\(before) \(after)")
        let carried = try await blocking { try roads.carried(by: "lte0") } - start
        #expect(try await used("lte-plan", in: scene) <= carried + 1_000_000)
    }
}

/// UDP over IPv4.
private enum Datagrams {
    private static func address(_ host: String, _ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return address
    }

    /// A socket that takes them, so that none is answered.
    static func open(_ host: String) throws -> (socket: CInt, port: UInt16) {
        let opened = try systemCall("socket", on: host) { socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0) }
        var own = address(host, 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &own) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = try systemCall("bind", on: host) { bind(opened, pointer, size) }
                _ = try systemCall("getsockname", on: host) { getsockname(opened, pointer, &size) }
            }
        }
        return (opened, UInt16(bigEndian: own.sin_port))
    }

    static func send(_ bytes: Int, to host: String, _ port: UInt16) throws {
        let opened = try systemCall("socket", on: host) { socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0) }
        defer { close(opened) }
        var target = address(host, port)
        let piece = [UInt8](repeating: 0, count: 1_000)
        for _ in 0..<(bytes / piece.count) {
            _ = try withUnsafePointer(to: &target) {
                try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    try systemCall("sendto", on: host) {
                        CInt(sendto(opened, piece, piece.count, 0, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)))
                    }
                }
            }
        }
    }
}
