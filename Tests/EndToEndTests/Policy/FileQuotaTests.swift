import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// A quota of files, from the built program.
@Suite("Quotas of files", .timeLimit(.minutes(Patience.minutes(2))))
struct FileQuotaTests {
    private struct Page: Decodable {
        struct Upload: Decodable {
            struct Hold: Decodable { let kind, text, since: String }
            struct Progress: Decodable { let acked: Int64 }
            let id, state, path: String
            let progress: Progress
            let holds: [Hold]
        }
        let uploads: [Upload]
    }

    private struct Status: Decodable {
        struct Class: Decodable {
            struct Hold: Decodable { let since: String }
            let hold: Hold
        }
        let classes: [Class]
    }

    private struct Usage: Decodable {
        struct Quota: Decodable { let used, reserved: Int64 }
        let quotas: [Quota]
    }

    private func reserved(_ fixture: DaemonFixture) async throws -> Int64? {
        guard let text = try await fixture.runVerb("usage", ["--json"]) else { return nil }
        return try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas.reduce(0) { $0 + $1.reserved }
    }

    private func uploads(_ fixture: DaemonFixture) async throws -> [Page.Upload]? {
        guard let text = try await fixture.runVerb("list", ["--json"]) else { return nil }
        return try JSONDecoder().decode(Page.self, from: Data(text.utf8)).uploads
    }

    /// The files that count for the quota.
    private func counted(_ fixture: DaemonFixture) async throws -> Int64 {
        try await eventually("the daemon reports the use of the quota") {
            guard let text = try await fixture.runVerb("usage", ["--json"]) else { return nil }
            return try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas.first.map {
                $0.used + $0.reserved
            }
        }
    }

    private func begun(_ all: [Page.Upload]?) -> [Page.Upload] { all?.filter { $0.progress.acked > 0 } ?? [] }

    private func scene() async throws -> (DaemonFixture, Camera) {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["bandwidth: 2 MB/s", "quotas: [{per: month, files: 1}]"]
        fixture.destinationKeys = ", chunk_size: 256 KiB"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 12_000_000, relative: FilePath("\(number).mp4")))
        }
        return (fixture, camera)
    }

    @Test("a started upload keeps its place through a pause, and no other starts instead")
    func paused() async throws {
        let (fixture, _) = try await scene()
        let first = try await eventually("one upload has begun") { begun(try await uploads(fixture)).first }
        _ = try await eventually("the daemon has paused the upload") { try await fixture.runVerb("pause", [first.id]) }
        try await eventually("the paused upload waits") {
            try await uploads(fixture)?.first { $0.id == first.id }.map { $0.state == "waiting" }
        }
        #expect(try await counted(fixture) == 1)
        try await eventually("the other uploads wait for the quota") {
            try await uploads(fixture)?.filter { $0.id != first.id }.allSatisfy { upload in
                upload.holds.contains { $0.kind == "quota" && $0.text.contains("1 file a month") }
            }
        }
        #expect(begun(try await uploads(fixture)).map(\.id) == [first.id])
        _ = try await eventually("the daemon has resumed the upload") {
            try await fixture.runVerb("resume", [first.id])
        }
        try await eventually("the upload is complete", within: .seconds(30), every: .milliseconds(100)) {
            try await fixture.status()?.counts.completed == 1
        }
        #expect(try await counted(fixture) == 1)
        #expect(begun(try await uploads(fixture)).map(\.id) == [first.id])
    }

    @Test("an exhausted quota keeps its start time after a restart, and holds a file since that file arrived")
    func since() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, files: 1}]"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        func held(_ number: Int) async throws -> String {
            try camera.drop(Clip(number: number, size: 1000, relative: FilePath("\(number).mp4")))
            return try await again(number)
        }
        func again(_ number: Int) async throws -> String {
            try await eventually("the upload waits for the quota") {
                try await uploads(fixture)?.first { $0.path.hasSuffix("/\(number).mp4") }?.holds.first {
                    $0.kind == "quota"
                }?.since
            }
        }
        func begins() async throws -> String {
            try await eventually("the class of uploads waits") {
                guard let text = try await fixture.runVerb("status", ["--json"]) else { return nil }
                return try JSONDecoder().decode(Status.self, from: Data(text.utf8)).classes.first?.hold.since
            }
        }
        try camera.drop(Clip(number: 0, size: 1000, relative: "0.mp4"))
        try await eventually("one upload is complete") { try await fixture.status()?.counts.completed == 1 }
        let first = try await held(1)
        let since = try await begins()
        #expect(first >= since)
        #expect(try await held(2) > first)
        // A plan reads the quotas first, and a quota that is found used up is recorded. This does not happen while
        // bytes are reserved, since they may be given back.
        try await eventually("no quota has reserved bytes") { try await reserved(fixture) == 0 }
        #expect(try await fixture.runVerb("plan") != nil)
        fixture.killDaemon()
        try fixture.startDaemon()
        // The start time is stored, and known from the first reading of the quotas.
        try await eventually("the class has waited since the same time") { try await begins() == since ? true : nil }
        #expect(try await again(1) == first)
        #expect(try await held(3) > first)
    }

    @Test("a file that never reached its destination uses no place")
    func unreached() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, files: 1}]"]
        // A port without a server.
        fixture.destination = "http://127.0.0.1:1/files/"
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 1000, relative: "0.mp4"))
        try await eventually("the upload has been tried") {
            try await uploads(fixture)?.first?.holds.contains { $0.kind == "destination" }
        }
        try await eventually("the quota has the place of the file back") { try await counted(fixture) == 0 }
        #expect(try await uploads(fixture)?.first?.holds.contains { $0.kind == "quota" } == false)
    }

    @Test("a started file counts once through kills, and continues although the quota is used up")
    func killed() async throws {
        let (fixture, _) = try await scene()
        var reached: Int64 = 0
        for _ in 0..<3 {
            reached = try await eventually("more bytes have been acknowledged") {
                begun(try await uploads(fixture)).first.flatMap {
                    $0.progress.acked > reached ? $0.progress.acked : nil
                }
            }
            fixture.killDaemon()
            try fixture.startDaemon()
        }
        try await eventually("the upload is complete", within: .seconds(30), every: .milliseconds(100)) {
            try await fixture.status()?.counts.completed == 1
        }
        #expect(try await counted(fixture) == 1)
        #expect(begun(try await uploads(fixture)).count == 1)
    }
}
