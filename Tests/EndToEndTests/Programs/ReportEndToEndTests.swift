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
        environment: "Eq7canary6", hook: "Kq7canary7", proxy: "Pq7canary8", control: "Cq7canary9-long-enough"
    )

    @Test("it has every part, and no secret of any kind; with --hide-names no name of a file either")
    func secrets() async throws {
        let canary = Self.canaries
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
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
            "hooks: [{name: web, url: \"http://127.0.0.1:9/\(canary.hookAddress)?x=\(canary.hookAddress)\", secret: {literal: \"\(canary.hook)\"}}]"
        ]
        fixture.controlKeys =
            ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {literal: \"\(canary.control)\"}}]"
        fixture.uploadTo = ["nas", "other"]
        try await fixture.startReceiver()
        try fixture.startDaemon(environment: ["CANARY": canary.environment])
        try Camera(fixture, dice: Dice(seed: 1)).drop(
            Clip(number: 0, size: 100_000, relative: "garden/name-of-a-clip.mp4"))
        try await eventually("an upload waits for a server that is not there") {
            try await fixture.runVerb("list", ["--state", "waiting"])?.contains("name-of-a-clip") == true
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
            for secret in Mirror(reflecting: canary).children.compactMap({ $0.value as? String }) {
                #expect(!text.contains(secret), "\(secret) is in the report")
            }
            let hidden = try #require(try await fixture.runVerb("report", ["--format", format, "--hide-names"]))
            #expect(!hidden.contains("name-of-a-clip"))
        }
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
