import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// `sluice report`: what it says, and what it must not say.
@Suite("Report of a machine", .timeLimit(.minutes(Patience.minutes(2))))
struct ReportEndToEndTests {
    private static let canaries = (
        hookAddress: "Uq7canary1", query: "Qq7canary2", header: "Hq7canary3", token: "Tq7canary4", file: "Fq7canary5",
        environment: "Eq7canary6", hook: "Kq7canary7", proxy: "Pq7canary8", control: "Cq7canary9-long-enough",
        userInfo: "Iq7canary10", hookHeader: "Gq7canary11", hookEnvironment: "Nq7canary12", signature: "Sq7canary13",
        uploadHeader: "Lq7canary14", viewer: "Vq7canary15-long-enough", proxyVariable: "Rq7canary16",
        argument: "Aq7canary17", metadata: "Mq7canary18", passed: "Zq7canary19"
    )

    @Test("it has every part, and no secret of any kind; with --hide-names no name of a file either")
    func secrets() async throws {
        let canary = Self.canaries
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // What root's programs can read of the daemon.
        let prying = try fixture.folder.writeProgram(
            "prying",
            #"""
            v=$(tr '\0' '\n' < /proc/$PPID/environ | sed -n 's/^CANARY=//p')
            echo "it is $v, {\"password\": \"\#(canary.passed)\"}, $(printf %s "$v" | base64)" >&2
            exit 1
            """#)
        let allowing = try fixture.folder.writeProgram("allowing", #"echo '{"answer": "go"}'"#)
        let file = fixture.folder.path.appending("secret-of-a-header")
        try Files.replace(file, with: Array(canary.file.utf8), mode: 0o600)
        fixture.destinationKeys = """
            , token: {literal: "\(canary.token)"}, http: {headers: {X-Site: {literal: "\(canary.header)"}, X-File: \
            {file: \(file.display)}, X-Env: {env: CANARY}}}
            """
        fixture.moreDestinations = [
            """
            other: {type: tus, url: "http://127.0.0.1:9/files?sig=\(canary.query)", http: {proxy: "http://127.0.0.1:9", \
            proxy_user: me, proxy_password: {literal: "\(canary.proxy)"}}}
            """
        ]
        fixture.topKeys = [
            """
            hooks: [{name: web, url: "http://127.0.0.1:9/\(canary.hookAddress)?x=\(canary.hookAddress)", on: [added], \
            secret: {literal: "\(canary.hook)"}, headers: {X-Hook: {literal: "\(canary.hookHeader)"}}}, \
            {name: program, on: [added], command: [/bin/sh, -c, "env >&2; exit 1", -u, "me:\(canary.argument)"]}, \
            {name: prying, on: [added], command: [\(prying.display)]}]
            """
        ]
        fixture.policyKeys = [
            "before_upload: {command: [\(allowing.display), --user, \"me:\(canary.argument)\"]}"
        ]
        fixture.controlKeys = """
            , listen: "127.0.0.1:0", tokens: [{name: me, secret: {literal: "\(canary.control)"}}, \
            {name: wall, role: view, secret: {literal: "\(canary.viewer)"}}]
            """
        fixture.uploadTo = ["nas", "other"]
        fixture.folderKeys = [#"exclude: ["by-hand/*"]"#, "metadata: {authorization: Bearer \(canary.metadata)}"]
        try await fixture.startReceiver()
        try fixture.startDaemon(environment: [
            "CANARY": canary.environment, "HOOK_SECRET": canary.hookEnvironment,
            "http_proxy": "http://me:\(canary.proxyVariable)@127.0.0.1:9", "no_proxy": "127.0.0.1",
        ])
        try Camera(fixture, dice: Dice(seed: 1)).drop(
            Clip(number: 0, size: 100_000, relative: "garden/name-of-a-clip.mp4"))
        try await eventually("an upload waits for a server that is not there") {
            try await fixture.runVerb("list", ["--state", "waiting"])?.contains("name-of-a-clip") == true
        }
        let byHand = fixture.drop.appending("by-hand/given-by-hand.mp4")
        try Files.makeFolders(byHand.parent)
        try Files.replace(byHand, with: Array("bytes".utf8))
        _ = try #require(
            try await fixture.runVerb(
                "add",
                [
                    byHand.display, "--to", "other", "--url",
                    "http://127.0.0.1:9/files?X-Amz-Signature=\(canary.signature)", "--header",
                    "X-Upload: \(canary.uploadHeader)",
                ]))
        let signIns = try await signIns(fixture)
        try await eventually("both hooks have failed") {
            let log = try fixture.daemon?.standardError() ?? ""
            return ["hook=web", "hook=program", "hook=prying"].allSatisfy(log.contains)
        }
        for (format, marks) in [("html", ["<h2 id=", "Content-Security-Policy"]), ("markdown", ["## Checks"])] {
            let text = try #require(try await fixture.runVerb("report", ["--format", format]))
            for part in [
                "Versions", "Configuration", "Checks", "Status", "Oldest waits", "Failed uploads", "Failed requests",
                "Ways", "Usage", "Log", "Disks",
            ] { #expect(text.contains(part), "\(part)") }
            for mark in marks { #expect(text.contains(mark), "\(mark)") }
            #expect(text.contains("name-of-a-clip.mp4"))
            // The daemon has the variable, and this process does not.
            #expect(!text.contains("it is not set") && text.contains("by the running daemon, pid"))
            let field = format == "html" ? "&quot;error&quot;" : "\"error\""
            #expect(text.contains(field), "the failed request")
            let planted = Mirror(reflecting: canary).children.compactMap { $0.value as? String } + signIns
            for secret in planted { #expect(!text.contains(secret), "\(secret) is in the report") }
            let hidden = try #require(try await fixture.runVerb("report", ["--format", format, "--hide-names"]))
            for name in ["name-of-a-clip", "garden", "given-by-hand"] + planted {
                #expect(!hidden.contains(name), "\(name) is in the report")
            }
            // What a line says besides the name stays.
            #expect(hidden.contains(/name-[0-9a-f]{8}\.mp4 to other  waiting/))
            // The log of a service is part of the report.
            let log = try fixture.daemon?.standardError() ?? ""
            for secret in planted { #expect(!log.contains(secret), "\(secret) is in the log") }
            #expect(!log.contains(base64(Array(canary.environment.utf8)).prefix(8)))
        }
    }

    /// Signs in as a browser does: by a link, and by a token.
    ///
    /// - Returns: The code of the link, and the cookies and the pages' tokens.
    private func signIns(_ fixture: DaemonFixture) async throws -> [String] {
        let link = try #require(try await fixture.runVerb("web"))
        let code = try #require(link.firstMatch(of: /#code=([0-9a-f]+)/)?.1)
        let port = try #require(link.firstMatch(of: /:([0-9]+)\/#/)?.1)
        var secrets = [String(code)]
        for (header, body) in [
            ("Origin: http://127.0.0.1:\(port)", #"{"code":"\#(code)"}"#),
            ("Authorization: Bearer \(Self.canaries.viewer)", "{}"),
        ] {
            let wire = try Wire(port: try #require(Int(port)))
            try await wire.send(
                "POST /v1/session HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(header)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            let reply = try await wire.reply()
            #expect(reply.status == 200)
            let cookie = try #require(reply.headers["set-cookie"]?.firstMatch(of: /=([^;]+);/)?.1)
            let token = try #require(String(decoding: reply.body, as: UTF8.self).firstMatch(of: /"token":"([^"]+)"/)?.1)
            secrets += [String(cookie), String(token)]
        }
        return secrets
    }

    @Test("a mistake in the configuration is named without the credentials of its address")
    func mistake() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://me:\(Self.canaries.userInfo)@127.0.0.1:9/files?sig=\(Self.canaries.query)"
        try fixture.writeConfiguration()
        let text = try #require(try await fixture.runVerb("report", ["--offline"]))
        #expect(text.contains("url"))
        #expect(!text.contains(Self.canaries.userInfo) && !text.contains(Self.canaries.query))
    }

    @Test("it writes a new file for its owner alone, contacts no server with --offline, and works without a daemon")
    func file() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        let output = fixture.folder.path.appending("report.html")
        _ = try #require(try await fixture.runVerb("report", ["--offline", "-o", output.display]))
        #expect(try FileStatus(at: output).mode & 0o777 == 0o600)
        let text = String(decoding: try Files.read(output, limit: 1 << 22), as: UTF8.self)
        #expect(text.contains("no such socket"))
        #expect(!text.contains("the request sent"))
        let again = try Child(
            fixture.binary, ["report", "--config", fixture.config.display, "-o", output.display],
            output: fixture.folder.path.appending("again.out"), errors: fixture.folder.path.appending("again.err"))
        #expect(try await again.end(within: .seconds(60)) == .status(64))
    }

    private static let parts = [
        "Versions", "Configuration", "Checks", "Status", "Oldest waits", "Failed uploads", "Failed requests", "Ways",
        "Usage", "Log", "Disks",
    ]

    /// The lines of each part.
    private func report(_ fixture: DaemonFixture, _ more: [String] = []) async throws -> [String: String] {
        let output = fixture.folder.path.appending(FilePath("report-\(hexadecimal(Random.bytes(4)))"))
        let child = try Child(
            fixture.binary,
            ["report", "--config", fixture.config.display, "--format", "markdown", "-o", output.display] + more,
            output: fixture.folder.path.appending("report.out"), errors: fixture.folder.path.appending("report.err"))
        #expect(try await child.end(within: .seconds(60)) == .status(0))
        let text = String(decoding: try Files.read(output, limit: 1 << 22), as: UTF8.self)
        var parts: [String: String] = [:]
        for part in text.split(separator: "\n## ").dropFirst() {
            parts[String(part.prefix { $0 != "\n" })] = String(part.drop { $0 != "\n" }).replacing("```", with: "")
        }
        #expect(Set(parts.keys) == Set(Self.parts))
        for part in Self.parts { #expect(parts[part]?.allSatisfy(\.isWhitespace) == false, "\(part) is empty") }
        return parts
    }

    @Test(
        "with a configuration that is broken meanwhile, everything is there that the running daemon and the machine say"
    )
    func brokenWhileRunning() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon answers") { try await fixture.runVerb("status") != nil }
        let whole = String(decoding: try Files.read(fixture.config), as: UTF8.self)
        // A wrong key, a wrong value of the socket's neighbour, and no YAML at all.
        for broken in [whole + "strange: 1\n", whole.replacing("keep}", with: "burn}"), whole + "  - [\n"] {
            try Files.replace(fixture.config, with: Array(broken.utf8))
            let parts = try await report(fixture)
            #expect(parts["Configuration"]?.contains("sluice.yaml:") == true)
            #expect(parts["Status"]?.contains("camera") == true && parts["Ways"]?.contains("nas") == true, "\(parts)")
            #expect(parts["Checks"]?.contains("by the running daemon") == true)
            #expect(parts["Checks"]?.contains("kernel") == true && parts["Checks"]?.contains("left out") == true)
            #expect(parts["Disks"]?.contains(fixture.drop.display) == true, "\(parts["Disks"] ?? "")")
            #expect(parts["Disks"]?.contains(fixture.state.display) == true)
            #expect(
                parts["Log"]?.contains("logs/daemon.err") == true && parts["Log"]?.contains("notice started") == true)
        }
    }

    @Test("without a daemon, and with a configuration that is missing or broken, each part says what it has or why not")
    func withoutDaemon() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        let whole = String(decoding: try Files.read(fixture.config), as: UTF8.self)
        for text in [whole, whole + "strange: 1\n", whole + "  - [\n", nil] {
            if let text {
                try Files.replace(fixture.config, with: Array(text.utf8))
            } else {
                try Files.remove(fixture.config)
            }
            let socket = ["--socket", fixture.socket.display]
            let parts = try await report(fixture, ["--offline"] + socket)
            #expect(parts["Status"]?.contains("no such socket") == true, "\(parts["Status"] ?? "")")
            for part in ["Oldest waits", "Ways", "Usage"] { #expect(parts[part]?.contains("see Status") == true) }
            #expect(parts["Log"]?.contains("journal") == true)
            #expect(parts["Checks"]?.contains("kernel") == true)
            if text != nil {
                #expect(parts["Disks"]?.contains(fixture.drop.display) == true, "\(parts["Disks"] ?? "")")
            }
            #expect(parts["Disks"]?.contains(" free") == true, "\(parts["Disks"] ?? "")")
        }
    }

    @Test("a daemon that is stopped by a signal is named as that, and its log is there")
    func frozen() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon answers") { try await fixture.runVerb("status") != nil }
        let daemon = try #require(fixture.daemon)
        try await daemon.stop()
        let parts = try await report(fixture, ["--offline"])
        daemon.send(SIGCONT)
        let status = parts["Status"] ?? ""
        #expect(
            parts["Versions"]?.contains("no /etc/os-release") == ((try? FileStatus(at: "/usr/lib/os-release")) == nil))
        #expect(status.contains("does not answer") && status.contains("kill -CONT \(daemon.pid)"), "\(status)")
        #expect(parts["Log"]?.contains("logs/daemon.err") == true && parts["Log"]?.contains("notice started") == true)
    }

    @Test("a check from a shell does not fail for a variable that only the daemon has")
    func variable() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.destinationKeys = ", token: {env: SLUICE_TEST_TOKEN}"
        try fixture.startDaemon(environment: ["SLUICE_TEST_TOKEN": "from-the-unit"])
        try await eventually("the daemon answers") { try await fixture.runVerb("status") != nil }
        // The exit status is 0.
        let text = try #require(try await fixture.runVerb("check")).split(whereSeparator: \.isWhitespace)
            .joined(separator: " ")
        #expect(text.contains("cannot be judged from this shell") && text.contains("sluice check --running"), "\(text)")
        _ = try #require(try await fixture.runVerb("check", ["--running"]))
        let parts = try await report(fixture)
        #expect(parts["Checks"]?.contains("SLUICE_TEST_TOKEN") == false, "\(parts["Checks"] ?? "")")
    }
}
