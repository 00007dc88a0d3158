import Core
import Linux
import TestKit
import Testing

/// Who may use the proxy of a program, and for how long.
@Suite(
    "Access to the proxy of programs, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct EgressAccessEndToEndTests {
    /// Words for setpriv(1) that make a program run as a user without rights.
    private static let other = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"]

    @Test("another user of the machine is refused while the program runs, and cannot read its credentials")
    func otherUser() async throws {
        let scene = try await EgressScene(script: EgressScene.waiting + "curl -sS $url/own")
        try await scene.start()
        let result = try scene.begin()
        let (_, port, pid) = try await scene.lease()
        for words in [
            ["-x", "http://127.0.0.1:\(port)"], ["-p", "-x", "http://127.0.0.1:\(port)"],
            ["-x", "socks5h://127.0.0.1:\(port)"], ["-x", "http://user:word@127.0.0.1:\(port)"],
            ["-x", "socks5h://user:word@127.0.0.1:\(port)"],
        ] {
            let (_, text) = try await scene.run(
                "/usr/bin/setpriv", Self.other + ["curl", "-sS", "-m", "10"] + words + ["\(scene.url)/other"])
            #expect(!text.contains("got ") && !text.isEmpty, "\(words) \(text)")
        }
        let (ending, text) = try await scene.run(
            "/usr/bin/setpriv", Self.other + ["cat", "/proc/\(pid)/environ"])
        #expect(ending != .status(0) && text.contains("Permission denied"), "\(text)")
        #expect(try await scene.network.bytes("wan") == 0)
        try await scene.release()
        #expect(try await result.result().ok)
        #expect(try scene.said() == "got 0\n")
    }

    @Test("stolen credentials are void when the program has ended, also while another program runs")
    func stolen() async throws {
        let scene = try await EgressScene(script: EgressScene.waiting + "curl -sS $url/own")
        try await scene.start()
        let first = try scene.begin()
        let stolen = try await scene.lease()
        func use(_ port: String) async throws -> String {
            let login = stolen.address.split(separator: "@").first ?? ""
            return try await scene.run(
                "/usr/bin/curl", ["-sS", "-m", "10", "-x", "\(login)@127.0.0.1:\(port)", "\(scene.url)/stolen"]
            ).text
        }
        #expect(try await use(stolen.port) == "got 0\n")
        try await scene.release()
        #expect(try await first.result().ok)
        // The port is closed with the last lease.
        let closed = try await use(stolen.port)
        #expect(closed.contains("Failed to connect") || closed.contains("Couldn't connect"), "\(closed)")
        let before = try await scene.network.bytes("wan")
        let second = try scene.begin()
        let next = try await scene.lease()
        #expect(next.address != stolen.address)
        let void = try await use(next.port)
        #expect(void.contains("no longer valid"), "\(void)")
        #expect(try await scene.network.bytes("wan") == before)
        try await scene.release()
        #expect(try await second.result().ok)
    }

    @Test("only the hosts of `hosts` are reached, as the program names them")
    func hosts() async throws {
        let scene = try await EgressScene(
            script: "curl -sS $url/named; curl -sS http://10.1.0.1:$(echo $url | cut -d: -f3)/other",
            keys: ", hosts: [\(TwoRoads.server)]")
        try await scene.start()
        _ = try await scene.tell()
        let said = try scene.said()
        #expect(said.contains("got 0") && said.contains("may not connect to 10.1.0.1"), "\(said)")
    }
}
