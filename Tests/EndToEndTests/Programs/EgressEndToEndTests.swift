import Core
import Linux
import TestKit
import TestTraits
import Testing

/// A program of a hook sends and receives over two routes what policy allows. The kernel's packet filter counts the bytes
/// of each.
@Suite(
    "Programs of hooks with `network: policy`, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct EgressEndToEndTests {
    @Test("the bytes of a program, in both directions, are those that the kernel counts, within 1 %")
    func counters() async throws {
        let body = "$(dirname $0)/body"
        let scene = try await EgressScene(
            script:
                "curl -sS -T \(body) $url/up && curl -sS -o /dev/null -p $url/2000000 && curl -sS -T \(body) -p $url/up"
        )
        let roads = scene.network.roads
        try await blocking { try roads.repeatLate() }
        try await scene.start()
        let result = try await scene.tell()
        let said = try scene.said()
        #expect(result.ok, "\(result) \(said)")
        let (sent, received) = (try #require(result.sent), try #require(result.received))
        let (left, came) = (try await scene.network.bytes("wan"), try await scene.received("wan"))
        #expect(left > 4_100_000 && came > 2_050_000, "\(left) \(came)")
        let repeated = try await scene.repeatedBytes()
        let lack = repeated > 0 ? left / 100 : 0
        #expect(sent >= left - lack && sent <= left + left / 100, "\(sent) \(left) \(repeated)")
        #expect(received >= came - repeated && received <= came + came / 100, "\(received) \(came) \(repeated)")
        #expect(try await scene.network.bytes("lte") == 0)
        let metrics = try #require(try await scene.fixture.runVerb("metrics"))
        #expect(metrics.contains("hook tell\",network=\"unmetered\"} \(sent)"), "\(sent) \(metrics)")
    }

    @Test(
        "while only a metered route is up, the program does not start, and no byte leaves; it runs when another one is up"
    )
    func metered() async throws {
        let scene = try await EgressScene(script: "curl -sS -T $0 $url/up")
        try await scene.network.ip("link", "set", "wan0", "down")
        try await scene.start()
        #expect(try await scene.fixture.runVerb("pause", ["--folder", "camera"]) != nil)
        try await eventually("the notice waits for an allowed network") {
            let status = try await scene.fixture.runVerb("status") ?? ""
            return status.contains("1 waiting") && status.contains("rule: `metered` of policy (")
        }
        let result = try await scene.tell()
        #expect(!result.ok && result.hold?.kind == "rule", "\(result)")
        #expect(try scene.said() == "")
        #expect(try await scene.network.bytes("lte") == 0)
        let roads = scene.network.roads
        try await scene.network.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await eventually("the program has run") { try scene.said().contains("got ") }
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test(
        "when a hold begins, its connection is reset at once, no byte follows, and the notice is delivered later"
    )
    func holds() async throws {
        let scene = try await EgressScene(
            ["metered: pause", "bandwidth: 2 MB/s"],
            script: "echo begin; curl -sS -T $(dirname $0)/body $url/up && echo end", size: 20_000_000)
        try await scene.start()
        #expect(try await scene.fixture.runVerb("pause", ["--folder", "camera"]) != nil)
        try await eventually("bytes have left") { try await scene.network.bytes("wan") > 1_000_000 }
        #expect(try await scene.fixture.runVerb("pause") != nil)
        // The command waits for the reset.
        let sent = try await scene.network.bytes("wan")
        try await eventually("the program has lost its connection") { try scene.said().contains("curl: ") }
        try await eventually("the notice waits") {
            let status = try await scene.fixture.runVerb("status") ?? ""
            return status.contains("waiting") && status.contains("everything is paused")
        }
        // The stop is no failure of the hook.
        let metrics = try #require(try await scene.fixture.runVerb("metrics"))
        let failed = metrics.split(separator: "\n").filter { $0.hasPrefix("sluice_hook_attempts_failed_total{") }
        #expect(failed.allSatisfy { $0.hasSuffix("} 0") }, "\(failed)")
        #expect(try await scene.network.bytes("wan") == sent)
        #expect(try await scene.fixture.runVerb("resume") != nil)
        try await eventually("the program has ended well", within: .seconds(60)) { try scene.said().contains("end") }
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test(
        "a program reaches neither this machine, nor the proxy through the proxy, nor other ports, whatever their names"
    )
    func refused() async throws {
        let scene = try await EgressScene(
            script: """
                port=${http_proxy##*:}
                for target in 127.0.0.1 127.1 localhost 0.0.0.0 [::1] [::ffff:127.0.0.1] 10.1.0.2 [::ffff:10.1.0.2] 169.254.1.1 224.0.0.1; do
                    for dialect in '' -p "-x socks5h://${http_proxy#http://}"; do
                        curl -sS -m 10 -o /dev/null -w '%{http_code}\\n' $dialect http://$target:$1/ || true
                        curl -sS -m 10 $dialect http://$target:$port/ && echo "reached $target"
                    done
                done
                echo all
                """)
        // The port is in the lease, so that only the address is refused.
        scene.fixture.topKeys = scene.fixture.topKeys.map {
            $0.replacing("tell],", with: "tell, \"\(scene.port)\"],")
        }
        try await scene.start()
        let result = try await scene.tell()
        let said = try scene.said()
        #expect(said.hasSuffix("all\n") && result.detail.contains("exit status 0"), "\(result) \(said)")
        // A whole line: a port may have these digits.
        #expect(!said.split(separator: "\n").contains("200"), "\(said)")
        #expect(said.contains("403"), "\(said)")
        #expect(scene.fixture.lastWords().contains("was refused"))
    }

    @Test(
        "the kernel holds a program to the proxy: it cannot connect by itself, nor open UDP sockets",
        .enabled(if: Confinement.Support.here.isComplete, "needs Landlock with ABI 4 (Linux 6.7) and seccomp"))
    func confined() async throws {
        let scene = try await EgressScene(
            script: """
                curl -sS --noproxy '*' $url/direct && echo reached
                env -u http_proxy -u HTTP_PROXY -u all_proxy -u ALL_PROXY curl -sS $url/direct && echo reached
                /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)' && echo reached
                curl -sS $url/proxied
                """)
        try await scene.start()
        let result = try await scene.tell()
        let said = try scene.said()
        #expect(result.ok && said.contains("got 0"), "\(result) \(said)")
        #expect(!said.contains("reached") && said.contains("Permission denied"), "\(said)")
        let check = try await scene.check()
        #expect(check.contains("held to the proxy of `network: policy`: TCP by Landlock"), "\(check)")
        // Its arguments, the log and the state never contain the credentials, which are in its environment alone.
        let words = scene.fixture.lastWords()
        #expect(!words.contains("@127.0.0.1"), "\(words)")
    }

    @Test("without a default route, a program reaches a server that another route leads to")
    func noDefaultRoute() async throws {
        let scene = try await EgressScene(script: "curl -sS -T $0 $url/up")
        let roads = scene.network.roads
        try await blocking {
            try roads.removeRoute("wan", metric: 10)
            try roads.removeRoute("lte", metric: 100)
            try roads.box.ip("route", "add", "\(TwoRoads.server)/32", "via", "10.1.0.1", "dev", "wan0")
        }
        try await scene.start()
        let result = try await scene.tell()
        #expect(try scene.said().contains("got "), "\(result)")
        #expect(try await scene.network.bytes("wan") > 0)
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test("curl in each of its ways, and Python's urllib, reach a server that is not on this machine")
    func clients() async throws {
        let scene = try await EgressScene(
            script: """
                curl -sS $url/absolute
                curl -sS -p $url/tunnel
                curl -sS -x socks5h://${http_proxy#http://} $url/socks
                /usr/bin/python3 -c "import urllib.request as r; print(r.urlopen('$url/urllib', data=b'12345').read())"
                """)
        try await scene.start()
        let result = try await scene.tell()
        let said = try scene.said()
        #expect(result.ok && said == "got 0\ngot 0\ngot 0\nb'got 5\\n'\n", "\(result) \(said)")
    }

    @Test("rclone uses the proxy of its environment", .needsPackages)
    func rclone() async throws {
        let program = try await blocking { try Tools.python("rclone").appending("rclone") }
        let scene = try await EgressScene(
            script: "\(program.display) cat --config /dev/null --http-url $url :http:300000 | wc -c")
        try await scene.start()
        let result = try await scene.tell()
        let said = try scene.said()
        #expect(result.ok && said.contains("300000"), "\(result) \(said)")
        #expect(try await scene.received("wan") > 300_000)
    }
}
