import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// Several destinations, machines or programs that use one account.
@Suite("vimeo: other writers", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoOtherWriterTests {
    /// Sends while another program writes `count` bytes to the new video, before its creation is answered.
    private func sent(_ end: VimeoEnd, _ staged: StagedUpload, _ recorder: RecordingReporter, others count: Int)
        async throws
    {
        end.server.script(.create, .held)
        let task = Task { try await staged.send(to: end, recorder) }
        try await eventually("the server has the video") { end.server.state.withLock { !$0.uploads.isEmpty } }
        end.server.change { $0.uploads[0].bytes = [UInt8](repeating: 7, count: count) }
        end.server.answerHeld()
        do { _ = try await task.value } catch is UploadError {}
    }

    @Test(
        "bytes of another writer in our video are neither mixed with ours nor removed, and a warning names it",
        arguments: [(900, 900), (2500, 1000), (2500, 2500)])
    func foreign(_ size: Int, _ others: Int) async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        try await sent(end, staged, recorder, others: others)
        let object = try await end.bring(staged, recorder)
        #expect(object.id == "/videos/2")
        let areWhole = end.contents == [[UInt8](repeating: 7, count: others), staged.content]
        #expect(areWhole, "\(end.server.requests)")
        #expect(recorder.left.isEmpty)
        #expect(object.warnings.contains { $0.contains("another writer") && $0.contains("/videos/1") })
    }

    @Test("a video with more bytes than were sent is not removed by a cancel either")
    func cancelled() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(2500), RecordingReporter())
        try await staged.sendStopped(to: end, recorder, accepting: 1000)
        let checkpoint = try #require(recorder.last)
        end.server.change { $0.uploads[0].bytes = [UInt8](repeating: 7, count: 2400) }
        #expect(try await end.destination.discard(checkpoint) == false)
        #expect(end.server.videos.count == 1)
        // A complete video, whose address has ended for that reason, is not removed either.
        end.server.change { $0.uploads[0].bytes = [UInt8](repeating: 7, count: 2500) }
        end.server.script(.head, .answer(404))
        #expect(try await end.destination.discard(checkpoint) == false)
        end.server.change { $0.uploads[0].bytes.removeLast(100) }
        // A video with only our bytes is removed.
        end.server.change { $0.uploads[0].bytes.removeLast(1400) }
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.server.videos.isEmpty)
    }

    @Test("an empty video of the same name and size is another machine's when bytes arrive: it is not used")
    func otherBox() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        // The request was lost before it was carried out.
        end.server.script(.create, .answer(502))
        _ = try await staged.failure(to: end, recorder)
        end.server.change { state in
            state.uploads.append(
                VimeoServer.Upload(
                    number: 1, flow: .tus, size: 1500, isVideo: true, fields: ["name": "clip"], created: state.now))
        }
        guard case .pending = try await staged.failure(to: end, recorder).remedy else {
            throw StagedUpload.Unexpected(what: "no second query")
        }
        let others = [UInt8](repeating: 7, count: 1000)
        end.server.change { $0.uploads[0].bytes = others }
        let object = try await end.bring(staged, recorder)
        #expect(object.id == "/videos/2")
        let areWhole = end.contents == [others, staged.content]
        #expect(areWhole)
        #expect(object.warnings.contains { $0.contains("got no answer") }, "\(object.warnings)")
    }

    @Test("a video created long after our request is not used")
    func later() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        end.server.script(.create, .answer(502))
        _ = try await staged.failure(to: end, recorder)
        end.pass(.seconds(3600))
        end.server.change { state in
            state.uploads.append(
                VimeoServer.Upload(
                    number: 1, flow: .tus, size: 1500, isVideo: true, fields: ["name": "clip"], created: state.now))
        }
        #expect(try await end.bring(staged, recorder).id == "/videos/2")
        #expect(end.contents == [[], staged.content])
    }

    @Test("two destinations of one account do not use each other's pending creations")
    func twoDestinations() async throws {
        let end = try VimeoEnd()
        let other = try VimeoEnd(server: end.server)
        let (one, two) = (try StagedUpload(1500, id: "01"), try StagedUpload(1500, id: "02", seed: 2))
        let (first, second) = (RecordingReporter(), RecordingReporter())
        end.server.script(.create, .answer(502), .held)
        _ = try await one.failure(to: end, first)
        let task = Task { try await two.send(to: other, second) }
        try await eventually("the server has the video of the other destination") {
            end.server.state.withLock { !$0.uploads.isEmpty }
        }
        guard case .pending = try await one.failure(to: end, first).remedy else {
            throw StagedUpload.Unexpected(what: "the upload did not wait")
        }
        end.server.answerHeld()
        _ = try await task.value
        _ = try await end.bring(one, first)
        let areWhole = end.contents == [two.content, one.content]
        #expect(areWhole)
        #expect(first.left.isEmpty && second.left.isEmpty)
    }

    // MARK: Cancelled before the creation was answered

    @Test("a cancel with an unknown creation result removes the empty video, if identifiable")
    func lostCreation() async throws {
        let end = try VimeoEnd()
        end.server.script(.create, .garbled(.empty))
        let recorder = RecordingReporter()
        _ = try await StagedUpload(1500).failure(to: end, recorder)
        let checkpoint = try #require(recorder.last)
        let error = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        #expect(error?.failure.code == .notShownYet)
        end.pass(.seconds(700))
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.contents.isEmpty)
        // The creation had no effect.
        #expect(try await end.destination.discard(checkpoint))
    }

    @Test("if the empty video is not identifiable the removal is unknown, and nothing is removed")
    func unknownCreation() async throws {
        let end = try VimeoEnd()
        end.server.script(.create, .garbled(.empty))
        let recorder = RecordingReporter()
        _ = try await StagedUpload(1500).failure(to: end, recorder)
        let checkpoint = try #require(recorder.last)
        end.server.change { state in
            state.uploads.append(
                VimeoServer.Upload(
                    number: 2, flow: .tus, size: 1500, isVideo: true, fields: ["name": "clip"], created: state.now))
        }
        end.pass(.seconds(700))
        let error = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        #expect(error?.failure.code == .removalUnknown && error?.isConclusive == true, "\(String(describing: error))")
        #expect(end.server.videos.count == 2)
        end.server.change { $0.account.scopes = ["upload", "delete"] }
        let forbidden = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        #expect(forbidden?.failure.code == .removalUnknown && forbidden?.isConclusive == true)
    }

    // MARK: Not found

    private static let gone = VimeoServer.Fault.answer(404, [], #"{"error": "not found", "error_code": 5000}"#)

    /// A file whose video is not found three times.
    private func lost(_ end: VimeoEnd, _ staged: StagedUpload, _ recorder: RecordingReporter) async throws {
        end.server.script(.video, Self.gone, Self.gone, Self.gone)
        for _ in 0..<2 { _ = try await staged.failure(to: end, recorder) }
        #expect(try await staged.failure(to: end, recorder).failure.code == .videoDeleted)
        #expect(recorder.last?["video"] == "/videos/1", "the lost video is still recorded")
    }

    private func again(_ end: VimeoEnd, _ staged: StagedUpload, _ recorder: RecordingReporter) async throws
        -> RemoteObject
    {
        var order = staged.order
        order.generation = 2
        order.checkpoint = recorder.last
        return try await end.destination.upload(order, reporter: recorder)
    }

    @Test("`retry` after a missing video looks for it first, and sends nothing if it is there")
    func foundAgain() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        try await lost(end, staged, recorder)
        #expect(try await end.destination.discard(try #require(recorder.last)) == false)
        let object = try await again(end, staged, recorder)
        #expect(object.id == "/videos/1" && object.warnings.isEmpty)
        #expect(end.server.state.withLock { $0.received } == 1500)
    }

    @Test("if the video is still missing the file is sent once more, with a warning of a possible duplicate")
    func sentTwice() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        try await lost(end, staged, recorder)
        end.server.script(.video, Self.gone)
        let object = try await again(end, staged, recorder)
        #expect(object.id == "/videos/2")
        #expect(object.warnings.contains { $0.contains("/videos/1") && $0.contains("there twice") })
        #expect(recorder.left.isEmpty && end.server.videos.count == 2)
    }

    @Test("a portal's 404 page does not concern the video, however often it comes")
    func portal() async throws {
        let end = try VimeoEnd()
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        for _ in 0..<6 {
            end.server.script(.video, .answer(404, [("Content-Type", "text/html")], "<html>who are you?</html>"))
            guard case .pending = try await staged.failure(to: end, recorder).remedy else {
                throw StagedUpload.Unexpected(what: "the upload did not wait")
            }
        }
        end.server.script(.removal, .answer(404, [], "<html>"))
        await #expect(throws: UploadError.self) {
            try await end.destination.discard(Checkpoint(["video": "/videos/1"]))
        }
        #expect(try await staged.send(to: end, recorder).id == "/videos/1")
    }

    @Test("an answer about a video of another size does not concern this one")
    func otherSize() async throws {
        let end = try VimeoEnd()
        end.server.script(
            .video, .answer(200, [], #"{"uri": "/videos/1", "status": "available", "upload": {"size": 5}}"#))
        let (staged, recorder) = (try StagedUpload(1500), RecordingReporter())
        let error = try await staged.failure(to: end, recorder)
        #expect(error.failure.message.contains("5 bytes"), "\(error)")
        #expect(try await staged.send(to: end, recorder).id == "/videos/1")
    }

    @Test("if the trial is refused for another reason, the check says that support of the flow is unknown")
    func checkUnknown() async throws {
        let end = try VimeoEnd()
        end.server.script(.create, .answer(403, [], #"{"error": "no", "error_code": 3200}"#))
        let result = await end.destination.check()
        #expect(result.verdict == .warning && result.detail.contains("not known whether"), "\(result.detail)")
    }
}
