import Core
import Glibc
import Linux
import TestKit
import Testing

/// Verified sources that are removed to free space for new ones.
@Suite(
    "Filling camera disk", .timeLimit(.minutes(Patience.minutes(2))),
    .enabled(if: SmallDisk.isPossible, "small file systems need root: sudo make test"))
struct RetentionTests {
    private func clip(_ number: Int) -> Clip {
        Clip(number: number, size: 1 << 20, relative: FilePath("clip \(number).mp4"))
    }

    private func stands(_ number: Int, _ fixture: DaemonFixture) throws -> Bool {
        try FileStatus.ifPresent(at: fixture.drop.appending(clip(number).relative)) != nil
    }

    @Test("the oldest verified sources are deleted while space is short, and never an unverified one")
    func room() async throws {
        let disk = try SmallDisk(size: 10 << 20)
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary(), places: ["drop": disk.path])
        fixture.afterKeys = ", until_free: 4 MiB"
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        for number in 0..<12 {
            try camera.drop(clip(number))
            try await eventually("the receiver has \(number), and the disk has space", within: .seconds(30)) {
                try Space(at: disk.path).free >= 4 << 20
                    && FileStatus.ifPresent(at: fixture.received.appending(clip(number).relative)) != nil
            }
        }
        let left = try (0..<12).filter { try stands($0, fixture) }
        #expect(left == Array((12 - left.count)..<12), "the oldest sources are deleted first: \(left)")
        #expect(left.count >= 5, "no more sources are deleted than needed: \(left)")
        // The receiver has a file before the daemon has recorded it.
        try await eventually("all uploads are complete", within: .seconds(30), every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":12,") == true
        }

        // No server accepts files any more: files that arrive now stay, however little space is left.
        fixture.killReceiver()
        for number in 12..<19 {
            try camera.drop(clip(number))
            try await eventually(
                "verified sources are deleted for \(number)", within: .seconds(90), every: .milliseconds(100)
            ) {
                try (0..<12).allSatisfy { try !stands($0, fixture) } || Space(at: disk.path).free >= 4 << 20
            }
        }
        #expect(try Space(at: disk.path).free < 4 << 20)
        #expect(try (0..<12).allSatisfy { try !stands($0, fixture) })
        #expect(try (12..<19).allSatisfy { try stands($0, fixture) })
        let status = try #require(await fixture.runVerb("status", []))
        #expect(status.contains("verified sources stay while 4.2 MB are free"), "\(status)")
    }

    @Test(
        "a kill at any step of the deletion loses no file, repeats no upload, and the source is deleted in the end",
        arguments: CrashSteps.retention + CrashSteps.release.filter { $0 != "release-begun" })
    func kill(step: String) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // More than any disk has: every verified source is to be removed.
        fixture.afterKeys = ", until_free: 1000000 TB"
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        for number in 0..<3 { try camera.drop(clip(number)) }
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(step):1"])
        let ending = try await #require(fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        try fixture.startDaemon()
        try await eventually("all sources have been released", within: .seconds(30)) {
            try Outcome.files(in: fixture.drop, hidden: true).isEmpty
        }
        let received = try Outcome.files(in: fixture.received, hidden: false)
        #expect(received.count == 3)
        for number in 0..<3 {
            #expect(try Files.read(fixture.received.appending(clip(number).relative)) == clip(number).content)
        }
    }
}
