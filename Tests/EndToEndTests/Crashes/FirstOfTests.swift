import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// Files that are to be at one of two destinations: two receivers, of which one stalls, is killed, or is as fast as the
/// other, and kills of the daemon.
@Suite("A file for one of two destinations", .serialized)
struct FirstOfTests {
    /// Two receivers, `nas` and `cloud`, and a daemon that sends to the first of them that takes a file.
    private struct Site {
        let fixture: DaemonFixture
        /// Only its receiver is used.
        let cloud: DaemonFixture

        init(after: String, nas: String = "", cloud keys: String = "") async throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            cloud = try DaemonFixture(source: .keep, binary: Setting.binary())
            try await fixture.startReceiver()
            try await cloud.startReceiver()
            fixture.uploadTo = ["{first_of: [nas, cloud], after: \(after)}"]
            fixture.moreDestinations = [
                "nas: {type: tus, url: \"http://\(fixture.address)/files/\"\(nas)}",
                "cloud: {type: tus, url: \"http://\(cloud.address)/files/\"\(keys)}",
            ]
        }

        func drop(_ name: String, size: Int) throws -> [UInt8] {
            let content = noise(size, seed: UInt64(name.utf8.count))
            let path = FilePath("beside/\(name)")
            try fixture.folder.write(path, content)
            try Files.rename(fixture.folder.path.appending(path), to: fixture.drop.appending(FilePath(name)))
            return content
        }

        func files(_ folder: FilePath, hidden: Bool = false) throws -> Set<FilePath> {
            Set(try Outcome.files(in: folder, hidden: hidden))
        }

        /// Waits until nothing is left to do.
        func settle(_ files: Int) async throws {
            try await eventually("every file is at a destination", within: .seconds(90), every: .milliseconds(100)) {
                try fixture.daemon?.requireRunning()
                guard try self.files(fixture.drop, hidden: true).isEmpty else { return false }
                guard let counts = try await fixture.status()?.counts else { return false }
                return counts == Status.Counts(ongoing: 0, completed: files, failed: 0, cancelled: files)
            }
        }

        func why(_ name: String) async throws -> String {
            try await fixture.runVerb("why", [fixture.drop.appending(FilePath(name)).display]) ?? "no answer"
        }
    }

    @Test("one that stalls in the middle is given up when the other has the file, and its part is removed")
    func stalled() async throws {
        let site = try await Site(after: "3s", nas: ", bandwidth: 300 kB/s")
        try site.fixture.startDaemon()
        let content = try site.drop("clip.mp4", size: 3_000_000)
        try await eventually("nas has a part of it", within: .seconds(20)) {
            try !site.files(site.fixture.received, hidden: true).isEmpty
        }
        site.fixture.receiver?.send(SIGSTOP)
        try await site.settle(1)
        #expect(try Files.read(site.cloud.received.appending("clip.mp4"), limit: 1 << 30) == content)
        site.fixture.receiver?.send(SIGCONT)
        try await eventually("the part at nas has been removed", within: .seconds(60)) {
            try !site.files(site.fixture.received, hidden: true).contains { $0.display.contains(".part") }
                && site.files(site.fixture.received).isEmpty
        }
        let list = try #require(try await site.fixture.runVerb("list", ["--state", "superseded"]))
        #expect(list.contains("superseded") && list.contains("nas"))
        #expect(try await site.why("clip.mp4").contains("superseded by cloud: upload "))
    }

    @Test("when the first is killed the second takes over, and a later file goes to the first only")
    func killed() async throws {
        let site = try await Site(after: "3s")
        site.fixture.killReceiver()
        try site.fixture.startDaemon()
        _ = try site.drop("clip.mp4", size: 100_000)
        try await eventually("`why` names the hold and its end", within: .seconds(20), every: .milliseconds(50)) {
            try await site.why("clip.mp4").contains(
                "alternative: goes to cloud only if the file is not verified in time at nas (until ")
        }
        try await site.settle(1)
        #expect(try site.files(site.cloud.received) == ["clip.mp4"])
        try await site.fixture.startReceiver()
        _ = try site.drop("later.mp4", size: 100_000)
        try await site.settle(2)
        #expect(try site.files(site.cloud.received) == ["clip.mp4"])
        #expect(try site.files(site.fixture.received) == ["later.mp4"])
    }

    /// After the Nth time that a step is reached.
    struct Kill: CustomTestStringConvertible, Sendable {
        let step: String
        let nth: Int
        var testDescription: String { "\(step):\(nth)" }
    }

    static let kills =
        ["opened", "accepted", "verified", "completed"].flatMap { step in [1, 2].map { Kill(step: step, nth: $0) } }
        + (3...14).map { Kill(step: "committed", nth: $0) }

    @Test(
        "with both under way, a kill at any step leaves the file at one, or says that it is at both",
        .timeLimit(.minutes(Patience.minutes(4))), arguments: Tier.sample(kills, inFull: 12))
    func raced(_ kill: Kill) async throws {
        // Both need about the same time.
        let site = try await Site(after: "1s", nas: ", bandwidth: 150 kB/s", cloud: ", bandwidth: 300 kB/s")
        try site.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(kill.step):\(kill.nth)"])
        let content = try site.drop("clip.mp4", size: 300_000)
        let ending = try? await site.fixture.daemon?.end(within: .seconds(6))
        // A race has no fixed number of steps.
        if ending == .signal(SIGKILL) { try site.fixture.startDaemon() }
        try await site.settle(1)
        try await eventually("nothing waits for removal", within: .seconds(60), every: .milliseconds(100)) {
            try await site.fixture.runVerb("list", ["--list", "cancelled", "--json"])?.contains("\"pending\"") == false
        }
        let places = [site.fixture.received, site.cloud.received]
        let found = try places.filter { try site.files($0).contains("clip.mp4") }
        for place in found { #expect(try Files.read(place.appending("clip.mp4"), limit: 1 << 30) == content) }
        let why = try await site.why("clip.mp4")
        #expect(!found.isEmpty, "\(site.fixture.lastWords())")
        if found.count > 1 { #expect(why.contains("as well") || why.contains("removal there: "), "\(why)") }
        #expect(try site.files(site.fixture.staging, hidden: true).isEmpty)
    }
}
