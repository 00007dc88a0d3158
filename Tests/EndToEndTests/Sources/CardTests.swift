import Core
import Glibc
import Linux
import TestKit
import Testing

/// A memory card, from its insertion to the report that it may be removed.
@Suite(
    "Memory card, with the built program", .serialized,
    .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value },
    .timeLimit(.minutes(Patience.minutes(4))))
struct CardTests {
    private func put(_ name: FilePath, into folder: FilePath) throws {
        let path = folder.appending(name)
        let file = try Descriptor.open(path, for: .creating)
        try file.write(noise(300_000), named: path)
        // A disk that is shut down loses data that was not synced.
        try file.sync(named: path)
        try file.close(named: path)
    }

    /// Each report that it is safe to remove, by its level.
    private func told(_ fixture: DaemonFixture) throws -> [String] {
        try fixture.daemon?.standardError().split(separator: "\n").compactMap { line in
            guard line.contains("safe to remove") else { return nil }
            return line.contains("every file on it is verified") ? "verified" : "staged"
        } ?? []
    }

    private func status(_ fixture: DaemonFixture, says words: String) async throws {
        try await eventually("`status` contains: \(words); \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.runVerb("status")?.contains(words) == true
        }
    }

    @Test("a card is safe to remove when all files are staged, and when all are verified; until then it shows why not")
    func card() async throws {
        let card = try await LoopDisk(.ext4)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": card.path])
        fixture.folderKeys = ["removable: always", "require: {mount: \(card.path.display)}"]
        // The folder is configured, but absent.
        try await fixture.startReceiver()
        fixture.killReceiver()
        for number in 1...3 { try put(FilePath("\(number).mp4"), into: fixture.drop) }
        let written = try Descriptor.open(fixture.drop.appending("open.mp4"), for: .creating)
        try written.write(noise(1000), named: "open.mp4")
        try fixture.startDaemon()
        try await status(fixture, says: "do not remove: ")
        try await eventually("three files are staged and wait") {
            try await fixture.runVerb("list")?.split(separator: "\n").filter { $0.contains("waiting") }.count == 3
        }
        #expect(try told(fixture) == [])
        try written.close(named: "open.mp4")
        try await status(fixture, says: "safe to remove: every file is staged; 4 uploads continue without it")
        try await eventually("the hook has been notified of the staged files") { try told(fixture) == ["staged"] }
        // The folder of a removed card is absent, and the uploads continue from their copies.
        try await card.unmount()
        try await status(fixture, says: "absent")
        try await fixture.startReceiver()
        try await status(fixture, says: "0 ongoing, 4 completed, 0 failed")
        #expect(try told(fixture) == ["staged"])
        // The card is back: the sources are released, and only then is it reported as safe to remove.
        try await card.mount()
        try await status(fixture, says: "safe to remove: every file is verified")
        try await eventually("the hook has been notified of the verified files") {
            try told(fixture) == ["staged", "verified"]
        }
        #expect(try Files.names(in: fixture.drop).isEmpty)
        // After one more file, both reports come again, or the second alone.
        try put("late.mp4", into: fixture.drop)
        try await eventually("the hook has been notified again", within: .seconds(40)) {
            let told = try told(fixture)
            return told.count > 2 && told.last == "verified"
        }
        let events = fixture.folder.path.appending("events")
        let reader = try Child(
            fixture.binary, ["events", "--since", "0", "--json", "--config", fixture.config.display], output: events,
            errors: fixture.folder.path.appending("events.err"))
        try await eventually("the events contain both levels") {
            let lines = try reader.standardOutput().split(separator: "\n").filter { $0.contains("\"safe_to_remove\"") }
            return lines.first?.contains("\"level\":\"staged\"") == true
                && lines.last?.contains("\"level\":\"verified\"") == true
                && lines.allSatisfy { $0.contains("\"folders\":\"camera\"") }
        }
        reader.end(with: SIGTERM)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "a card removed half-way is absent, with few log lines; reinserted, it continues at once")
    func pulledOut() async throws {
        let card = try await LoopDisk(.xfs)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": card.path])
        fixture.folderKeys = ["removable: always", "require: {mount: \(card.path.display)}"]
        fixture.stagingKeys = ", concurrency: 1"
        try await fixture.startReceiver()
        let files = (1...300).map { FilePath("\($0).mp4") }
        for file in files { try put(file, into: fixture.drop) }
        try Files.syncFolder(fixture.drop)
        try fixture.startDaemon()
        try await eventually("some files are staged", every: .milliseconds(2)) {
            try Outcome.files(in: fixture.staging, hidden: true).count > 5
        }
        // Data that is not in memory cannot be read any more; then the system removes the mount.
        try await card.shutDown()
        try await eventually("the log reports the disk of the folder") {
            try fixture.daemon?.standardError().contains(/the disk of folder|the disk of their folder/) == true
        }
        try await card.unmount()
        try await status(fixture, says: "absent")
        try await eventually("all staged files have been uploaded", within: .seconds(60)) {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        let lines = try #require(fixture.daemon).standardError().split(separator: "\n").filter {
            $0.contains("warning") || $0.contains("error") || $0.contains("notice")
        }
        #expect(lines.count < 20, "\(lines.joined(separator: "\n"))")
        #expect(try await fixture.status()?.counts.failed == 0)
        try await card.mount()
        try await eventually(
            "all files are received and released; \(fixture.lastWords())", within: .seconds(60)
        ) {
            try Outcome.files(in: fixture.received, hidden: false).count == files.count
                && Files.names(in: fixture.drop).isEmpty
        }
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("with uploads in place, a card is not safe to remove before verification")
    func inPlace() async throws {
        let card = try await LoopDisk(.xfs)
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary(), places: ["drop": card.path])
        fixture.folderKeys = ["removable: always", "staging: {copy: in-place}"]
        try await fixture.startReceiver()
        fixture.killReceiver()
        try put("a.mp4", into: fixture.drop)
        try fixture.startDaemon()
        try await status(fixture, says: "do not remove: 1 file is not staged yet")
        try await fixture.startReceiver()
        try await status(fixture, says: "safe to remove: every file is verified")
        try await eventually("the hook has been notified of the verified files only") {
            try told(fixture) == ["verified"]
        }
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
