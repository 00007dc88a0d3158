import Core
import Glibc
import Linux
import TestKit
import Testing

/// Data of the daemon that other users might see: in its memory, on its disk, in its output.
@Suite("Privacy of the daemon's data", .timeLimit(.minutes(Patience.minutes(2))))
struct PrivacyTests {
    private static let canBeAnother = geteuid() == 0 && NetworkNamespace.isPossible
    /// A user ID that no account has.
    private static let user: UInt32 = 64_125

    @Test(
        "other processes of its user cannot read its memory, unless `SLUICE_DUMPABLE=1` permits it",
        .enabled(if: canBeAnother, "needs root"), arguments: [false, true])
    func memory(_ isOpen: Bool) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let folder = fixture.folder.path.display
        fixture.uploadTo = ["archive"]
        try fixture.startDaemon(
            inMounts: """
                cp "$1" \(folder)/sluice
                shift
                chown -R \(Self.user):\(Self.user) \(folder)
                \(isOpen ? "export SLUICE_DUMPABLE=1" : "")
                set -- setpriv --reuid \(Self.user) --regid \(Self.user) --clear-groups --bounding-set=-all -- \
                    \(folder)/sluice "$@"
                """)
        try await eventually("the daemon answers", within: .seconds(30)) {
            try fixture.daemon?.requireRunning()
            return try await fixture.runVerb("status") != nil
        }
        let pid = try #require(fixture.daemon?.pid)
        for name in ["environ", "mem", "maps"] {
            let path = FilePath("/proc/\(pid)/\(name)")
            // Entries that another process of the user may open belong to the user; the rest to root (proc_pid(5)).
            var mode = stat()
            try #require(stat(path.display, &mode) == 0)
            #expect(mode.st_uid == (isOpen ? Self.user : 0), "\(name)")
            let dd = try Child(
                "/usr/bin/setpriv",
                [
                    "--reuid", "\(Self.user)", "--regid", "\(Self.user)", "--clear-groups", "--bounding-set=-all", "--",
                    "/usr/bin/dd", "if=\(path.display)", "count=0", "status=none",
                ],
                output: fixture.folder.path.appending("look.out"), errors: fixture.folder.path.appending("look.err"))
            let ending = try await dd.end(within: .seconds(20))
            #expect((ending == .status(0)) == isOpen, "\(name)")
        }
    }

    @Test("state, staged copies and the socket are closed to others, whatever the umask")
    func modes() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // No server is listening there: the staged copy stays.
        fixture.destination = "http://127.0.0.1:\(try Loopback.freePort())/files/"
        for place in [fixture.state, fixture.staging] {
            try #require(place.withCString { rmdir($0) } == 0)
        }
        fixture.topKeys = ["metrics: {textfile: \(fixture.folder.path.appending("sluice.prom").display)}"]
        try fixture.writeConfiguration()
        let open = try Child(
            "/bin/sh",
            ["-c", "umask 0; exec \"$@\"", "sh", fixture.binary.display, "run", "--config", fixture.config.display],
            output: fixture.folder.path.appending("out"), errors: fixture.folder.path.appending("err"))
        let file = Clip(number: 1, size: 300_000, relative: "1.mp4")
        try Camera(fixture, dice: Dice(seed: 1)).drop(file)
        try await eventually("the upload is staged and waits", within: .seconds(30)) {
            try await fixture.runVerb("list")?.contains("waiting") == true
        }
        func mode(_ path: FilePath) throws -> UInt32 { try FileStatus(at: path).mode & 0o7777 }
        #expect(try mode(fixture.state) == 0o750)
        #expect(try mode(fixture.staging) == 0o700)
        #expect(try mode(fixture.folder.path.appending("control.sock")) == 0o660)
        let staged = try Outcome.files(in: fixture.staging, hidden: true)
        #expect(!staged.isEmpty)
        for relative in staged {
            #expect(try mode(fixture.staging.appending(relative)) == 0o600, "\(relative)")
        }
        let kept = try Outcome.files(in: fixture.state, hidden: true)
        #expect(kept.contains { $0.display.hasSuffix(".db") || $0.display.contains("sqlite") }, "\(kept)")
        for relative in kept {
            #expect(try mode(fixture.state.appending(relative)) & 0o007 == 0, "\(relative)")
        }
        open.end(with: SIGTERM)
    }

    @Test("contents and secrets go only to their destination, not to a log, answer, argument or state file")
    func words() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let web = try HookFixture.Web()
        let secrets = ["TheTokenOfTheStore01", "TheKeyOfTheWebhook02", "TheControlToken03Long"]
        let files = try secrets.enumerated().map {
            try fixture.folder.write(FilePath("secret\($0)"), Array("\($1)\n".utf8)).display
        }
        // Secrets are often links to the version of the day.
        let link = fixture.folder.path.appending("link")
        try Files.makeLink(link, to: fixture.folder.path.appending("today"))
        try Files.replace(fixture.folder.path.appending("today"), with: Array("\(secrets[0])\n".utf8))
        fixture.receiverKeys = ["--token-file", link.display]
        fixture.destinationKeys = ", token: {file: \(files[0])}"
        fixture.topKeys = [
            "hooks:", "  - {name: web, url: \"\(web.url)\", secret: {file: \(files[1])}}",
        ]
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(files[2])}}]"
        try await fixture.startReceiver()
        try Files.replace(FilePath(files[0]), with: Array("AnotherToken04\n".utf8))
        let content = Array("THE CONTENT OF A FILE ".utf8)
        let path = fixture.drop.appending("clip.mp4")
        try fixture.startDaemon()
        try Files.replace(path, with: Array([[UInt8]](repeating: content, count: 20_000).joined()))
        // Errors contain text too.
        try await eventually("the refused token is reported; \(fixture.lastWords())", within: .seconds(30)) {
            try await fixture.runVerb("status")?.contains("token") == true
        }
        try Files.replace(FilePath(files[0]), with: Array("\(secrets[0])\n".utf8))
        try await eventually("the daemon has reloaded the new token") { try await fixture.runVerb("reload") != nil }
        try await eventually("the hook has been notified", within: .seconds(30)) {
            try web.events.contains { $0.type == "completed" }
        }
        let daemon = try #require(fixture.daemon)
        var texts = [
            "log": try daemon.standardError() + daemon.standardOutput(),
            "arguments": String(
                decoding: try Files.read(FilePath("/proc/\(daemon.pid)/cmdline"), limit: 1 << 20), as: UTF8.self),
        ]
        let asked = [
            ["status"], ["status", "--json"], ["list", "--json"], ["why", path.display], ["show", "1", "--json"],
            ["usage"],
            ["metrics"], ["config"], ["check"], ["doctor"], ["hook"],
        ]
        for words in asked {
            let verb = try Child(
                fixture.binary, [words[0], "--config", fixture.config.display] + words.dropFirst(),
                output: fixture.folder.path.appending("said"), errors: fixture.folder.path.appending("said.err"))
            // Some verbs find errors here, and end with a status of their own.
            _ = try await verb.end(within: .seconds(20))
            texts[words.joined(separator: " ")] = try verb.standardOutput() + verb.standardError()
            for file in [verb.output, verb.errors] { try Files.removeIfPresent(file) }
        }
        #expect(texts["status"]?.contains("1 completed") == true)
        #expect(texts["check"]?.contains("nas") == true)
        for relative in try Outcome.files(in: fixture.state, hidden: true) {
            let bytes = try Files.read(fixture.state.appending(relative), limit: 64 << 20)
            texts[relative.display] = String(decoding: bytes, as: UTF8.self)
        }
        #expect(texts.count > asked.count + 2, "no file of the state was read")
        for (name, text) in texts {
            #expect(!text.contains("THE CONTENT OF"), "\(name)")
            for secret in secrets + ["AnotherToken04"] { #expect(!text.contains(secret), "\(name): \(secret)") }
        }
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["clip.mp4"])
    }
}
