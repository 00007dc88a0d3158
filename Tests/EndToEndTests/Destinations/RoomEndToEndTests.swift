import Core
import FoundationEssentials
import Linux
import Synchronization
import TestKit
import Testing

/// A tus server that refuses files larger than its space.
private final class FullServer: Sendable {
    private struct State {
        /// The largest upload, in bytes.
        var most = 0
        /// The length and content of each upload, by its address.
        var uploads: [String: (length: Int, content: [UInt8])] = [:]
        var refusals = 0
    }

    private let state = Mutex(State())
    private let retryAfter: String?

    init(retryAfter: String? = nil) { self.retryAfter = retryAfter }

    func take(upTo most: Int) { state.withLock { $0.most = most } }
    var contents: [[UInt8]] { state.withLock { $0.uploads.values.map(\.content) } }
    var refusals: Int { state.withLock { $0.refusals } }

    func answer(_ exchange: Exchange) {
        let tus = [("Tus-Resumable", "1.0.0")]
        switch exchange.method {
        case "OPTIONS": exchange.reply(204, tus + [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")])
        case "POST":
            let length = exchange.header("Upload-Length").flatMap { Int($0) } ?? 0
            let address = state.withLock { state -> String? in
                if length > state.most {
                    state.refusals += 1
                    return nil
                }
                let address = "/files/\(state.uploads.count)"
                state.uploads[address] = (length, [])
                return address
            }
            guard let address else {
                let wait = retryAfter.map { [("Retry-After", $0)] } ?? []
                return exchange.reply(507, tus + wait, "the quota of this account is used up")
            }
            exchange.reply(201, tus + [("Location", address)])
        case "HEAD":
            guard let upload = state.withLock({ $0.uploads[exchange.target] }) else { return exchange.reply(404, tus) }
            exchange.reply(
                200, tus + [("Upload-Offset", "\(upload.content.count)"), ("Upload-Length", "\(upload.length)")])
        case "PATCH":
            let body = exchange.body()
            let offset = state.withLock { state in
                state.uploads[exchange.target]?.content += body
                return state.uploads[exchange.target]?.content.count ?? 0
            }
            exchange.reply(204, tus + [("Upload-Offset", "\(offset)")])
        default: exchange.reply(405, tus)
        }
    }
}

@Suite("Space at a server, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct RoomEndToEndTests {
    private struct Answer: Decodable {
        struct Hold: Decodable { var kind, text, since, until: String? }
        struct Destination: Decodable {
            var name: String
            var hold: Hold?
        }
        var destinations: [Destination]
    }

    private func hold(of name: String, _ fixture: DaemonFixture) async throws -> Answer.Hold? {
        guard let text = try await fixture.runVerb("status", ["--json"]) else { return nil }
        return try JSONDecoder().decode(Answer.self, from: Data(text.utf8)).destinations.first { $0.name == name }?.hold
    }

    private func fixture(_ server: FakeServer, to destinations: [String] = ["nas"]) throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = server.url + "/files/"
        fixture.uploadTo = destinations
        return fixture
    }

    private func expect(_ clips: [Clip], at full: FullServer, _ fixture: DaemonFixture) async throws {
        try await eventually("every upload is complete", within: .seconds(60), every: .milliseconds(100)) {
            try fixture.daemon?.requireRunning()
            guard let counts = try await fixture.status()?.counts else { return false }
            return counts.ongoing == 0 && counts.failed == 0 && counts.completed >= clips.count
        }
        #expect(
            full.contents.map(\.count).sorted() == clips.map(\.size).sorted(),
            "the server has each file once and complete")
    }

    @Test("a server that is full until a given time holds its uploads, others continue, and no byte is sent twice")
    func untilThen() async throws {
        let full = FullServer(retryAfter: "3")
        let server = try FakeServer { full.answer($0) }
        let fixture = try fixture(server, to: ["nas", "archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try fixture.startDaemon()
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 50_000 + number, relative: FilePath("\(number).mp4")))
        }
        let hold = try await eventually("the destination is held") { try await self.hold(of: "nas", fixture) }
        #expect(hold.kind == "quota")
        #expect(hold.until != nil && hold.since != nil)
        #expect(hold.text?.contains("answered 507 to creation: the quota of this account is used up") == true)
        #expect(hold.text?.hasPrefix("nas: ") == true)
        try await eventually("the other destination has all files", within: .seconds(30)) {
            try Outcome.files(in: fixture.archive, hidden: false).count == 3
        }
        #expect(try await self.hold(of: "archive", fixture) == nil)
        // The server is asked again at the given time, and not for each file.
        try await eventually("the server has refused a second time", within: .seconds(30)) { full.refusals > 1 }
        full.take(upTo: .max)
        try await expect(camera.clips, at: full, fixture)
        try await eventually("the hold has ended") { try await self.hold(of: "nas", fixture) == nil }
        let words = try #require(fixture.daemon).standardError()
        #expect(words.split(separator: "destination held").count == 2, "logged once: \(words)")
        #expect(words.split(separator: "destination works again").count == 2, "logged once: \(words)")
        #expect(!words.contains("upload failed"))
    }

    @Test("a server that accepts only small files gets them while a large one waits alone, also after a restart")
    func alone() async throws {
        let full = FullServer()
        let server = try FakeServer { full.answer($0) }
        full.take(upTo: 100_000)
        let fixture = try fixture(server)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 300_000, relative: "large.mp4"))
        try await eventually("the server has refused the large file", within: .seconds(30)) { full.refusals > 0 }
        for number in 1..<6 {
            try camera.drop(Clip(number: number, size: 50_000 + number, relative: FilePath("\(number).mp4")))
        }
        try await eventually("the server has the small files", within: .seconds(60)) { full.contents.count == 5 }
        try await eventually("`why` names the reason of the large file") {
            try await fixture.runVerb("why", ["large.mp4"])?.contains("quota: nas: ") == true
        }
        fixture.killDaemon()
        try fixture.startDaemon()
        let before = full.refusals
        try await eventually("the server has been asked again after the restart", within: .seconds(30)) {
            full.refusals > before
        }
        full.take(upTo: .max)
        try await expect(camera.clips, at: full, fixture)
    }
}
