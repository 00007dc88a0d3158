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
        let prying = try program(
            fixture, "prying",
            #"""
            v=$(tr '\0' '\n' < /proc/$PPID/environ | sed -n 's/^CANARY=//p')
            echo "it is $v, {\"password\": \"\#(canary.passed)\"}, $(printf %s "$v" | base64)" >&2
            exit 1
            """#)
        let allowing = try program(fixture, "allowing", #"echo '{"answer": "go"}'"#)
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
            let field = format == "html" ? "&quot;error&quot;" : "\"error\""
            #expect(text.contains(field), "the failed request")
            let planted = Mirror(reflecting: canary).children.compactMap { $0.value as? String } + signIns
            for secret in planted { #expect(!text.contains(secret), "\(secret) is in the report") }
            let hidden = try #require(try await fixture.runVerb("report", ["--format", format, "--hide-names"]))
            for name in ["name-of-a-clip", "garden", "given-by-hand"] + planted {
                #expect(!hidden.contains(name), "\(name) is in the report")
            }
            // The log of a service is part of the report.
            let log = try fixture.daemon?.standardError() ?? ""
            for secret in planted { #expect(!log.contains(secret), "\(secret) is in the log") }
            #expect(!log.contains(base64(Array(canary.environment.utf8)).prefix(8)))
        }
    }

    private func program(_ fixture: DaemonFixture, _ name: String, _ script: String) throws -> FilePath {
        let path = fixture.folder.path.appending(FilePath(name))
        try Files.replace(path, with: Array("#!/bin/sh\n\(script)\n".utf8), mode: 0o755)
        return path
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
}
