import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// A person's exceptions, with the same packet counts.
@Suite(
    "Exceptions, with the built program", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(4))))
struct ExceptionEndToEndTests {
    @Test(
        "one upload may use a metered network while others wait; that is counted, shown, and survives a restart")
    func upload() async throws {
        let scene = try await NetworkEndToEndTests.Scene()
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        for (number, name) in ["one.mp4", "two.mp4"].enumerated() {
            try scene.camera.drop(Clip(number: number, size: 300_000, relative: FilePath(name)))
            _ = try await scene.waits(name, for: "rule")
        }
        scene.fixture.killDaemon()
        try scene.fixture.startDaemon()
        _ = try await scene.waits("one.mp4", for: "rule")
        let one = scene.fixture.drop.appending("one.mp4").display
        let said = try await eventually("the upload has an exception") {
            try await scene.fixture.runVerb("allow", [one, "--metered", "--for", "1h"])
        }
        #expect(said.contains(": metered until ") && said.contains(", by "), "\(said)")
        try await eventually("the file has been received") {
            try Outcome.files(in: scene.fixture.received, hidden: false).count == 1
        }
        #expect(try await scene.bytes("lte") > 300_000)
        // The exception ends with the upload.
        try await eventually("the exception has ended") {
            try await scene.fixture.runVerb("status")?.contains("allowed") == false
        }
        try await eventually("the bytes count as metered") {
            try await scene.fixture.runVerb("usage", ["--json", "--by", "network"])?.contains("\"metered\"")
        }
        let sent = try await scene.bytes("lte")
        _ = try await scene.waits("two.mp4", for: "rule")
        #expect(try await scene.bytes("lte") < sent + 2000)
    }

    @Test("a folder exceeds its window and quota while allowed, and stops when the exception is withdrawn")
    func folder() async throws {
        let scene = try await NetworkEndToEndTests.Scene(
            ["bandwidth: 3 MB/s", "quotas: [{per: day, bytes: 0}]"], rules: "[]")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 20_000_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "quota")
        #expect(hold.text.contains("allows nothing"))
        let words = ["--folder", "camera", "--quota"]
        _ = try await eventually("the folder has an exception") {
            try await scene.fixture.runVerb("allow", words + ["--for", "1h"])
        }
        try await scene.begun()
        _ = try await eventually("the exception has been withdrawn") {
            try await scene.fixture.runVerb("allow", words + ["--end"])
        }
        _ = try await scene.waits("clip.mp4", for: "quota")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "quota")
        #expect(try await scene.bytes("wan") < stopped + 2000)
        // So slow that neither is done before the next commands.
        _ = try await scene.fixture.runVerb("limit", ["2kB/s", "--for", "1h"])
        #expect(try await scene.fixture.runVerb("status")?.contains("at most 2.0 kB/s") == true)
        _ = try await eventually("the folder has an exception again") {
            try await scene.fixture.runVerb("allow", words + ["--for", "1h"])
        }
        _ = try await scene.fixture.runVerb("limit", ["0", "--for", "1h"])
        let nothing = try await scene.waits("other.mp4", for: "global")
        #expect(nothing.text == "`sluice limit 0` stops all transfers; `sluice limit off` ends that")
        let sent = try await scene.bytes("wan")
        _ = try await scene.waits("clip.mp4", for: "global")
        #expect(try await scene.bytes("wan") < sent + 2000)
        _ = try await scene.fixture.runVerb("limit", ["off"])
        try await scene.arrives()
    }
}
