import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// When an upload counts as verified if its source is to be removed.
@Suite("vimeo: verification before the source is released", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoVerifyTests {
    @Test(
        "if the source is deleted, a transcoded video is awaited; if it stays, or if so configured, it is not",
        arguments: VimeoFlow.allCases)
    func byAction(_ flow: VimeoFlow) async throws {
        for (removes, verify, waits) in [
            (true, nil, true), (false, nil, false), (true, "transfer", false), (false, "transcoded", true),
        ] as [(Bool, String?, Bool)] {
            let end = try VimeoEnd(flow, verify.map { ["verify": .text($0)] } ?? [:])
            end.server.change { $0.behaviour.states = ["transcoding", "available"] }
            let staged = try StagedUpload(1500, removesSource: removes)
            let recorder = RecordingReporter()
            if waits {
                let error = try await staged.failure(to: end, recorder)
                guard case .pending = error.remedy else { throw error }
            }
            let object = try await staged.send(to: end, recorder)
            #expect(object.verifiedBy == (waits ? "transcoded" : "offset"))
        }
    }

    @Test("a check for readiness is one GET", arguments: VimeoFlow.allCases)
    func polls(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.change { $0.behaviour.states = ["transcoding"] }
        let staged = try StagedUpload(1500, removesSource: true)
        let recorder = RecordingReporter()
        _ = try await staged.failure(to: end, recorder)
        end.server.change { $0.requests = [] }
        for _ in 0..<3 { _ = try await staged.failure(to: end, recorder) }
        #expect(end.server.requests == ["video", "video", "video"])
    }

    @Test("after `verify_timeout` the wait is reported and goes on; at last the upload completes with a warning")
    func timeout() async throws {
        let end = try VimeoEnd(.tus, ["verify_timeout": .duration(.seconds(7200))])
        end.server.change { $0.behaviour.states = ["transcoding"] }
        let staged = try StagedUpload(1500, removesSource: true)
        let recorder = RecordingReporter()
        #expect(try await staged.failure(to: end, recorder).failure.code == .remoteWorks)
        end.server.change { $0.behaviour.ahead = 7_100_000 }
        #expect(try await staged.failure(to: end, recorder).failure.code == .remoteWorks)
        end.server.change { $0.behaviour.ahead = 30 * 86_400_000 }
        for _ in 0..<20 {
            let late = try await staged.failure(to: end, recorder)
            #expect(late.failure.code == .verifyTimeout)
            #expect(late.failure.message.contains("the source and the copy stay"), "\(late)")
            guard case .pending(let wait) = late.remedy else { throw late }
            #expect(wait == .seconds(3600))
        }
        end.server.change { $0.behaviour.states = ["available"] }
        let object = try await staged.send(to: end, recorder)
        #expect(object.verifiedBy == "transcoded" && object.warnings.count == 1, "\(object.warnings)")
        #expect(end.server.state.withLock { $0.received } == 1500)
    }

    @Test("a failed transcode fails with the service's message, and its video is removed")
    func failed() async throws {
        let end = try VimeoEnd()
        end.server.change { $0.behaviour.states = ["transcoding", "transcoding_error"] }
        let staged = try StagedUpload(1500, removesSource: true)
        let recorder = RecordingReporter()
        _ = try await staged.failure(to: end, recorder)
        let error = try await staged.failure(to: end, recorder)
        #expect(error.remedy == .failUpload && error.failure.code == .transcodingFailed)
        #expect(error.failure.message.contains("transcoding_error"), "\(error)")
    }

    @Test("a ticket's video without a name releases no source, and one whose source stays completes with a warning")
    func unnamed() async throws {
        for removes in [true, false] {
            let end = try VimeoEnd(.fourStep)
            end.server.script(.complete, .loseReply)
            end.server.change { $0.behaviour.showsAfter = 1_000_000 }
            let staged = try StagedUpload(1500, removesSource: removes)
            let recorder = RecordingReporter()
            if removes {
                let error = try await staged.failure(to: end, recorder)
                guard case .pending = error.remedy else { throw error }
                end.server.change { $0.behaviour.ahead = 2_000_000 }
                #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
            } else {
                #expect(try await end.bring(staged, recorder).warnings.count == 1)
            }
        }
    }

    /// The API's answer to a query, in place of the emulator's.
    private static func state(_ words: String, uri: String = "/videos/1") -> VimeoServer.Fault {
        .answer(
            200, [("Content-Type", "application/json")], "{\"uri\": \"\(uri)\"\(words.isEmpty ? "" : ", " + words)}")
    }

    @Test(
        "only a fully consistent answer counts as transcoded",
        arguments: [
            (#""status": "available", "is_playable": false"#, false),
            (#""transcode": {"status": "complete"}, "is_playable": false"#, false),
            (#""status": "available", "transcode": {"status": "in_progress"}, "is_playable": false"#, false),
            (#""status": "available", "transcode": {"status": "in_progress"}"#, false),
            (#""status": "uploading", "is_playable": true"#, false),
            (#""status": "available", "upload": {"status": "in_progress"}, "is_playable": true"#, false),
            (#""status": "transcoding", "is_playable": true"#, true),
            (#""status": "available", "transcode": {"status": "complete"}, "is_playable": true"#, true),
            (#""transcode": {"status": "complete"}"#, true), (#""status": "available""#, true), ("", false),
        ])
    func consistent(_ words: String, _ isPlayable: Bool) async throws {
        let end = try VimeoEnd()
        end.server.script(.video, Self.state(words))
        let (staged, recorder) = (try StagedUpload(1500, removesSource: true), RecordingReporter())
        if isPlayable {
            #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
        } else {
            let error = try await staged.failure(to: end, recorder)
            guard case .pending = error.remedy else { throw error }
        }
    }

    @Test("an answer about another video is ignored, and one with a word for its link is about the same")
    func otherVideo() async throws {
        let end = try VimeoEnd()
        end.server.script(
            .video, Self.state(#""status": "available""#, uri: "/videos/2"),
            Self.state(#""status": "available""#, uri: "/videos/1:a1b2"))
        let (staged, recorder) = (try StagedUpload(1500, removesSource: true), RecordingReporter())
        #expect(try await staged.failure(to: end, recorder).failure.code == .remoteWorks)
        #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
    }

    @Test("a check without an answer holds nothing and is no attempt, and `verify_timeout` continues over it")
    func noWord() async throws {
        let clocks = ManualClocks()
        let end = try VimeoEnd(.tus, ["verify_timeout": .duration(.seconds(7200))], clocks: clocks)
        let faults: [VimeoServer.Fault] = [
            .answer(200, [("Content-Encoding", "br")], "x"), .answer(500), .answer(503), .answer(502),
            .answer(200, [], "<html>"),
        ]
        let (staged, recorder) = (try StagedUpload(1500, removesSource: true), RecordingReporter())
        for fault in faults {
            end.server.script(.video, fault)
            let error = try await staged.failure(to: end, recorder)
            #expect(error.failure.code == .remoteWorks, "\(error)")
            guard case .pending = error.remedy else { throw error }
        }
        clocks.advance(by: .seconds(30 * 86_400))
        end.server.change { $0.behaviour.ahead = 30 * 86_400_000 }
        end.server.script(.video, .answer(500))
        #expect(try await staged.failure(to: end, recorder).failure.code == .verifyTimeout)
        #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
    }

    @Test("a video not found once is queried again, and none is removed because it was not found")
    func notFound() async throws {
        let end = try VimeoEnd()
        let gone = VimeoServer.Fault.answer(404, [], #"{"error": "not found", "error_code": 5000}"#)
        end.server.script(.video, gone)
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        guard case .pending = try await staged.failure(to: end, recorder).remedy else {
            throw StagedUpload.Unexpected(what: "no wait")
        }
        _ = try await staged.send(to: end, recorder)
        #expect(end.contents == [staged.content])
        let other = try VimeoEnd()
        other.server.script(.video, gone, gone, gone)
        let journal = RecordingReporter()
        for _ in 0..<2 {
            guard case .pending = try await staged.failure(to: other, journal).remedy else {
                throw StagedUpload.Unexpected(what: "no wait")
            }
        }
        #expect(try await staged.failure(to: other, journal).failure.code == .videoDeleted)
        try await other.sweep(journal)
        #expect(other.contents == [staged.content])
    }

    @Test("a missing answer to the last bytes stays as a warning beside `transcoded`")
    func unanswered() async throws {
        let end = try VimeoEnd()
        end.server.script(.patch, .loseReply)
        let (staged, recorder) = (try StagedUpload(900, removesSource: true), RecordingReporter())
        _ = try await staged.failure(to: end, recorder)
        let object = try await staged.send(to: end, recorder)
        #expect(object.verifiedBy == "transcoded")
        #expect(object.warnings.contains { $0.contains("no answer to its last bytes") }, "\(object.warnings)")
    }

    @Test(
        "an accepted refusal of the last bytes is a warning, whatever its status", arguments: VimeoFlow.allCases,
        [400, 403, 422, 500])
    func accepted(_ flow: VimeoFlow, _ status: Int) async throws {
        for accepts in [true, false] {
            let end = try VimeoEnd(flow, ["final_error": .text(accepts ? "accept" : "fail")])
            let (staged, recorder) = (try StagedUpload(900), RecordingReporter())
            let kind: VimeoServer.Kind = flow == .tus ? .patch : .put
            end.server.script(kind, .refused(status))
            guard accepts else {
                var error = try await staged.failure(to: end, recorder)
                if error.remedy != .failUpload { error = try await staged.failure(to: end, recorder) }
                #expect(error.failure.code == .refusedAtEnd)
                continue
            }
            let object = try await end.bring(staged, recorder)
            #expect(object.warnings.contains { $0.contains("final_error: accept") }, "\(object.warnings)")
            #expect(end.contents == [staged.content])
        }
    }
}
