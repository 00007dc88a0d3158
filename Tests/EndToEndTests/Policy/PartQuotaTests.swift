import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Quotas of bytes, with destinations for whole files and for parts.
@Suite("Quotas of bytes", .timeLimit(.minutes(Patience.minutes(3))))
struct PartQuotaTests {
    private struct Usage: Decodable {
        struct Quota: Decodable { let used, reserved: Int64 }
        let quotas: [Quota]
    }

    /// Returns the used bytes when no transfer is in progress.
    private func used(_ fixture: DaemonFixture) async throws -> Int64 {
        try await eventually("no quota has reserved bytes") {
            guard let text = try await fixture.runVerb("usage", ["--json"]) else { return nil }
            let quota = try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas.first
            return quota?.reserved == 0 ? quota?.used : nil
        }
    }

    @Test(
        "a quota counts bytes to a server, whether its address is a number or a name",
        arguments: ["127.0.0.1", "localhost"])
    func named(_ host: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, bytes: 1150 kB}]"]
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        // One after the other: the rest of the quota then has space for a retransmitted segment, which takes 64 KiB on
        // loopback, more than the overhead that a file of this size reserves.
        try bucket(at: emulator, fixture, host: host, concurrency: 1)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 1...4 {
            try camera.drop(Clip(number: number, size: 400_000, relative: FilePath("\(number).mp4")))
        }
        try fixture.startDaemon()
        do {
            try await eventually(
                "two uploads are complete, and two wait", within: .seconds(30), every: .milliseconds(50)
            ) {
                guard try await fixture.status()?.counts.completed == 2 else { return false }
                return try await fixture.runVerb("list", ["--json"])?.components(separatedBy: "\"kind\":\"quota\"")
                    .count == 3
            }
        } catch let overdue as Overdue {
            let list = try? await fixture.runVerb("list", ["--json"])
            Issue.record(
                overdue, "\(list ?? "no list") \(emulator.requests.joined(separator: "; ")) \(fixture.lastWords())")
        }
        let used = try await used(fixture)
        #expect(used >= 800_000 && used <= 1_150_000, "\(used)")
        #expect(emulator.objects.count == 2)
    }

    @Test("parts are sent completely or not at all, in parallel and from several files, and none twice")
    func parts() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        try bucket(at: emulator, fixture)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 1...2 {
            try camera.drop(Clip(number: number, size: 31_000_000, relative: FilePath("\(number).mp4")))
        }
        func allow(_ amount: String) throws {
            fixture.policyKeys = ["quotas: [{per: month, bytes: \(amount)}]"]
            try fixture.writeConfiguration()
        }
        func sent() -> Int { emulator.requests.count { $0.hasPrefix("part ") } }
        func stored() -> Int { emulator.uploads.values.map(\.parts.count).reduce(0, +) }
        try allow("12 MB")
        try fixture.startDaemon()
        for (limit, parts) in [(12, 2), (24, 4), (30, 5)] as [(Int64, Int)] {
            if limit > 12 {
                try allow("\(limit) MB")
                _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
            }
            // Another part would not fit into the remainder, and the unused reservation was given back.
            try await eventually(
                "both uploads wait for more than \(limit) MB", within: .seconds(60), every: .milliseconds(50)
            ) {
                try fixture.daemon?.requireRunning()
                let text = try await fixture.runVerb("list", ["--json"])
                return text?.components(separatedBy: "\"kind\":\"quota\"").count == 3 && stored() == parts
            }
            #expect(stored() == parts && sent() == parts, "\(emulator.requests)")
            let used = try await used(fixture)
            #expect(used <= limit * 1_000_000, "\(used)")
        }
        let text = try #require(try await fixture.runVerb("why", ["1.mp4"]))
        #expect(text.contains("30 MB a month") && text.contains("cannot be split"), "\(text)")
        let asked = emulator.requests.count
        // The wait is due to the earlier rules.
        fixture.killDaemon()
        try allow("100 MB")
        try fixture.startDaemon()
        try await eventually("both uploads are complete", within: .seconds(60), every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 2
        }
        #expect(sent() == 12, "\(emulator.requests.dropFirst(asked))")
        #expect(emulator.uploads.isEmpty && emulator.objects.count == 2)
    }

    @Test("a part larger than the quota is reported by plan, why and check without an end; an exception sends it")
    func never() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, bytes: 3 MB}]"]
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        try bucket(at: emulator, fixture, partSize: 8)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 12_000_000, relative: "large.mp4"))
        try camera.drop(Clip(number: 2, size: 400_000, relative: "small.mp4"))
        try fixture.startDaemon()
        try await eventually("the small upload is complete, and the large one waits", within: .seconds(30)) {
            guard try await fixture.status()?.counts.completed == 1 else { return false }
            return try await fixture.runVerb("list", ["--json"])?.contains("\"kind\":\"quota\"") ?? false
        }
        func said(_ verb: String, _ arguments: [String] = []) async throws -> String {
            try #require(try await fixture.runVerb(verb, arguments)).split { $0 == " " || $0 == "\n" }
                .joined(separator: " ")
        }
        let words =
            "never under this quota: policy allows 3 MB a month (`quotas`), and a piece of 8.4 MB, which is sent "
            + "whole or not at all, takes 8.9 MB with its overhead; raise the quota, or make `part_size` of destinations.bucket smaller, or make "
            + "an exception with `sluice allow --quota`"
        let why = try await said("why", ["large.mp4"])
        #expect(why.contains(words) && !why.contains("until"), "\(why)")
        for arguments in [["list", "--json"], ["show", "large.mp4", "--json"], ["why", "large.mp4", "--json"]] {
            let shown = try await said(arguments[0], Array(arguments.dropFirst()))
            #expect(shown.contains("never under this quota") && !shown.contains("next_attempt_at"), "\(shown)")
            #expect(!shown.contains("\"until\""), "\(shown)")
        }
        let shown = try await said("show", ["large.mp4"])
        #expect(!shown.contains("next at"), "\(shown)")
        for arguments in [["--rate", "1 MB/s"], []] {
            let plan = try await said("plan", arguments)
            #expect(
                plan.contains("Never, with this configuration camera -> bucket 1 file, 12.0 MB: \(words)"), "\(plan)")
            for untrue in ["Will not fit", "sent by", "it would not end", "is not known yet"] {
                #expect(!plan.contains(untrue), "\(plan)")
            }
        }
        let check = try await said("check", ["--running"])
        #expect(check.components(separatedBy: words).count == 3, "\(check)")
        #expect(check.contains("1 file waits for bucket: never under this quota"), "\(check)")
        #expect(try await said("check").contains(words))
        let requests = emulator.requests.count
        try #require(try await fixture.runVerb("allow", ["large.mp4", "--quota", "--for", "1h"]) != nil)
        try await eventually("both uploads are complete", within: .seconds(30)) {
            try await fixture.status()?.counts.completed == 2
        }
        #expect(emulator.requests.count > requests && emulator.objects.count == 2)
    }

    @Test("with little traffic so far, plan names the limiting quota, and the rate only for the end")
    func unknownSpeed() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, bytes: 3 MB}]"]
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        try bucket(at: emulator, fixture, partSize: 8)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 400_000, relative: "first.mp4"))
        try fixture.startDaemon()
        try await eventually("the first upload is complete", within: .seconds(30)) {
            try await fixture.status()?.counts.completed == 1
        }
        try camera.drop(Clip(number: 2, size: 2_750_000, relative: "second.mp4"))
        let plan = try await eventually("the second upload waits") { () -> String? in
            guard try await fixture.runVerb("list", ["--json"])?.contains("\"kind\":\"quota\"") == true else {
                return nil
            }
            return try await fixture.runVerb("plan", [])
        }.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
        #expect(
            plan.contains(
                "Waiting now camera -> bucket 1 file, 2.8 MB: quota: too little is left of 3 MB a month of policy"),
            "\(plan)")
        #expect(
            plan.contains("End not known camera -> bucket 1 file, 2.8 MB: speed: the rate to"), "\(plan)")
        #expect(!plan.contains("destination: it is not known"), "\(plan)")
    }

    @Test(
        "a quota of received bytes that can never fit a part is reported by check, plan and why",
        arguments: ["received", "both"])
    func neverReceived(_ direction: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let limit = direction == "both" ? "3 MB" : "400 kB"
        fixture.policyKeys = ["quotas: [{per: month, bytes: \(limit), direction: \(direction)}]"]
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        try bucket(at: emulator, fixture, partSize: 8)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 12_000_000, relative: "large.mp4"))
        try fixture.startDaemon()
        let words =
            "never under this quota: policy allows \(limit) \(direction == "both" ? "sent and received" : direction) a month"
        for (verb, arguments) in [("why", ["large.mp4"]), ("plan", []), ("check", []), ("check", ["--running"])] {
            try await eventually("\(verb) reports that the file never fits") {
                try await fixture.runVerb(verb, arguments)?.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
                    .contains(words)
            }
        }
        #expect(emulator.objects.isEmpty)
    }

    @Test("smaller configured parts, after a reload, fit a quota that was too small before")
    func smaller() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: month, bytes: 12 MB}]"]
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        try bucket(at: emulator, fixture, partSize: 16)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 8_000_000, relative: "large.mp4"))
        try camera.drop(Clip(number: 2, size: 20_000_000, relative: "larger.mp4"))
        try fixture.startDaemon()
        try await eventually("the small file is uploaded; the large one never fits", within: .seconds(30)) {
            guard try await fixture.status()?.counts.completed == 1 else { return false }
            return try await fixture.runVerb("why", ["larger.mp4"])?.contains("never under this quota") ?? false
        }
        try bucket(at: emulator, fixture, partSize: 5)
        fixture.policyKeys = ["quotas: [{per: month, bytes: 16 MB}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        try await eventually("one part of the large file is uploaded", within: .seconds(30)) {
            emulator.uploads.values.map(\.parts.count) == [1]
        }
        let why = try #require(try await fixture.runVerb("why", ["larger.mp4"]))
        #expect(!why.contains("never"), "\(why)")
    }

    private func bucket(
        at emulator: S3Emulator, _ fixture: DaemonFixture, host: String = "127.0.0.1", partSize: Int = 5,
        concurrency: Int = 4
    ) throws {
        let key = try fixture.folder.write("s3.key", Array("some-secret-key".utf8))
        fixture.uploadTo = ["bucket"]
        fixture.moreDestinations = [
            "bucket: {type: s3, endpoint: \"\(emulator.url.replacing("127.0.0.1", with: host))\", bucket: bucket, "
                + "access_key: {literal: AK}, secret_key: {file: \(key.display)}, addressing: path, part_size: \(partSize) MiB, "
                + "single_up_to: 1 MiB, parallel: 4, concurrency: \(concurrency)}"
        ]
    }
}
