import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// VOD's verdict on the bytes, where a source is to be removed.
@Suite("apsara-vod: verification before the source is released", .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraVerifyTests {
    @Test(
        "if the source is deleted, VOD's confirmation is awaited, without a slot and less and less often",
        arguments: ["a.mp4", "a.png"])
    func waits(_ name: String) async throws {
        try await ApsaraEnd.open(.key) { end in
            try await end.server.control("settings", #"{"media_status": "Transcoding"}"#)
            let staged = try StagedUpload(3 * ApsaraTests.part, name: FilePath(name), removesSource: true)
            let recorder = RecordingReporter()
            for expected in [15, 30, 60] {
                let error = try await staged.failure(to: end, recorder)
                #expect(error.remedy == .pending(after: .seconds(expected)), "\(error)")
            }
            #expect(recorder.sent.isEmpty)
            let checkpoint = try #require(recorder.last)
            #expect(checkpoint["grant_secret"] == nil, "no unneeded grant is kept")
            #expect(try await end.destination.discard(checkpoint) == false, "VOD cannot remove a complete medium")
            try await end.server.control("settings", #"{"media_status": null}"#)
            let object = try await staged.send(to: end, recorder)
            #expect(object.verifiedBy == "transcoded" && object.warnings.isEmpty)
            #expect(try await end.media().map(\.refreshes) == [0])
            // If the source stays, the storage's confirmation is enough.
            try await end.server.control("settings", #"{"media_status": "Transcoding"}"#)
            let other = try StagedUpload(100, id: "02", name: FilePath("b" + name), seed: 2)
            #expect(try await other.send(to: end, RecordingReporter()).verifiedBy != "transcoded")
        }
    }

    @Test("a file that VOD cannot transcode fails with its message, and `retry` creates another medium")
    func failed() async throws {
        try await ApsaraEnd.open(.key) { end in
            try await end.server.control("settings", #"{"media_status": "TranscodeFail"}"#)
            let staged = try StagedUpload(100, removesSource: true)
            let recorder = RecordingReporter()
            let error = try await staged.failure(to: end, recorder)
            #expect(error.failure.code == .transcodingFailed && error.remedy == .failUpload)
            #expect(error.failure.message.contains("TranscodeFail"), "\(error)")
            try await end.server.control("settings", #"{"media_status": null}"#)
            #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
            #expect(try await end.media().count == 2)
        }
    }

    @Test("with `authorisation` no status can be queried: that is reported, and the upload completes without")
    func own() async throws {
        try await ApsaraEnd.open(.service) { end in
            let doubts = Apsara.releaseDoubts(ApsaraEnd.values(end.server.url, .service, [:]))
            #expect(doubts.count == 1 && doubts.first?.contains("has no key to ask VOD") == true)
            _ = try await StagedUpload(100, removesSource: true).send(to: end, RecordingReporter())
            let problems = Apsara.objections(
                ApsaraEnd.values(end.server.url, .service, ["verify": .text("transcoded")]))
            #expect(problems.map(\.key) == ["verify"])
        }
    }

    @Test("an unusable answer creates no medium at each attempt: requests become rare", arguments: ["a.mp4", "a.png"])
    func bounded(_ name: String) async throws {
        let folder = TemporaryFolder()
        let script = try folder.writeProgram(
            "ask", "cat >/dev/null; echo x >>\(folder.path.display)/asked; echo '{}'")
        let clocks = ManualClocks()
        let destination = try Apsara(
            ["authorisation.command": .texts([script.display])],
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
        let (staged, recorder) = (try StagedUpload(100, name: FilePath(name)), RecordingReporter())
        for _ in 0..<288 {
            var order = staged.order
            order.checkpoint = recorder.last
            let error = await #expect(throws: UploadError.self) {
                try await destination.upload(order, reporter: recorder)
            }
            guard case .holdDestination? = error?.remedy else {
                throw StagedUpload.Unexpected(what: "\(String(describing: error))")
            }
            clocks.advance(by: .seconds(300))
        }
        let asked = try Files.read(folder.path.appending("asked"), limit: 1 << 20).count / 2
        #expect((3...12).contains(asked), "\(asked) media in a day")
    }
}
