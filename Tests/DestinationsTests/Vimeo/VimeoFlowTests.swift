import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// A flow's requirements of the API, the facts known from the creation on, and videos that are found again.
@Suite("vimeo: flows", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoFlowTests {
    @Test("a ticket uses version 3.3, and all others 3.4", arguments: VimeoFlow.allCases)
    func versions(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        _ = try await end.bring(try StagedUpload(1500))
        let versions = end.server.state.withLock { $0.versions }
        let expected =
            flow == .fourStep
            ? [
                "POST /me/videos 3.3", "DELETE /users/1/uploads/1 3.3", "PATCH /videos/1 3.3", "GET /videos/1 3.4",
            ] : ["POST /me/videos 3.4", "GET /videos/1 3.4"]
        #expect(versions == expected)
    }

    @Test("the check tests whether the account supports the flow, and leaves no remains", arguments: VimeoFlow.allCases)
    func refused(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        let good = await end.destination.check()
        #expect(good.verdict == .ok, "\(good.detail)")
        #expect(end.server.state.withLock { $0.uploads.isEmpty })
        end.server.change { $0.account.isLegacy = false }
        let result = await end.destination.check()
        #expect(result.verdict == (flow == .tus ? .ok : .failed), "\(result.detail)")
        if flow != .tus { #expect(result.detail.contains("set `flow: tus`"), "\(result.detail)") }
        for code in [3116, 2230] {
            end.server.script(.create, .answer(400, [], "{\"error\": \"no\", \"error_code\": \(code)}"))
            let refused = await end.destination.check()
            #expect(refused.verdict == .failed && refused.detail.contains("vimeo") == false, "\(refused.detail)")
        }
        // A service that accepts any size makes a video: it is removed again.
        end.server.script(.create, .answer(201, [], "{\"uri\": \"/videos/77\"}"))
        #expect(await end.destination.check().verdict == .ok)
        #expect(end.server.requests.last == "removal")
    }

    @Test(
        "the video's name is known before a byte is sent, with its page",
        arguments: [VimeoFlow.tus, .twoStep])
    func names(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        #expect(try await staged.sendStopped(to: end, recorder) { !$0.names.isEmpty })
        #expect(recorder.names == ["/videos/1"] && recorder.addresses == ["https://vimeo.example/1"])
        #expect(recorder.sent.isEmpty)
        // A video from before this was reported is reported with the next attempt.
        let other = RecordingReporter()
        try await other.record(try #require(recorder.last))
        _ = try await end.bring(staged, other)
        #expect(other.names.contains("/videos/1"))
    }

    @Test("the name of a ticket is known as soon as it is a video")
    func nameOfTicket() async throws {
        let end = try VimeoEnd(.fourStep)
        end.server.change { $0.behaviour.states = ["transcoding", "available"] }
        let recorder = RecordingReporter()
        _ = try await end.bring(try StagedUpload(10), recorder)
        #expect(recorder.names.last == "/videos/1" && recorder.addresses.last == "https://vimeo.example/1")
    }

    @Test("every call to the API obeys `reply_timeout`", arguments: [VimeoServer.Kind.create, .video])
    func patience(_ kind: VimeoServer.Kind) async throws {
        let end = try VimeoEnd(.tus, ["reply_timeout": .duration(.milliseconds(1500))])
        end.server.script(kind, .held)
        let error = try await StagedUpload(10).failure(to: end)
        // The video's state is requested again later, and holds no other upload.
        #expect(error.failure.code == (kind == .video ? .remoteWorks : .noReply), "\(error)")
        #expect(error.failure.message.contains("no answer for"), "\(error)")
        let patient = try VimeoEnd(.tus, ["reply_timeout": .duration(.seconds(30))])
        patient.server.script(kind, .slow(600))
        _ = try await StagedUpload(10).send(to: patient, RecordingReporter())
    }

    // MARK: Cancelled while its end is requested

    /// Stops an upload whose end was requested, and whose answer is no longer awaited.
    private func stoppedInEnd(
        _ end: VimeoEnd, _ staged: StagedUpload, isAnswered: Bool = false
    ) async throws -> Checkpoint {
        end.server.script(.complete, .held)
        let recorder = RecordingReporter()
        let task = Task { try await staged.send(to: end, recorder) }
        try await eventually("the completion has been requested") { end.server.requests.contains("complete") }
        task.cancel()
        if isAnswered { end.server.answerHeld() }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        return try #require(recorder.last)
    }

    @Test(
        "a cancel during completion removes the video, with or without a received name",
        arguments: [true, false])
    func cancelledInEnd(isAnswered: Bool) async throws {
        let end = try VimeoEnd(.fourStep)
        let checkpoint = try await stoppedInEnd(end, try StagedUpload(1500), isAnswered: isAnswered)
        #expect((checkpoint["video"] != nil) == isAnswered)
        try await eventually("the server has a video") { !end.server.videos.isEmpty }
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.contents.isEmpty)
    }

    @Test("a video that is not visible yet is looked for again; only then is it reported as absent")
    func showsLate() async throws {
        let end = try VimeoEnd(.fourStep)
        end.server.change { $0.behaviour.showsAfter = 60_000 }
        let checkpoint = try await stoppedInEnd(end, try StagedUpload(1500))
        for _ in 0..<2 {
            let error = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
            #expect(error?.failure.code == .notShownYet)
        }
        end.server.change { $0.behaviour.ahead = 61_000 }
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.contents.isEmpty)
        // If the request for its end never arrived, there is no video; this is known once a video would have appeared.
        let other = try VimeoEnd(.fourStep)
        other.server.script(.complete, .answer(503))
        let recorder = RecordingReporter()
        _ = try await StagedUpload(1500).failure(to: other, recorder)
        let last = try #require(recorder.last)
        await #expect(throws: UploadError.self) { try await other.destination.discard(last) }
        other.server.change { $0.behaviour.ahead = 700_000 }
        #expect(try await other.destination.discard(last))
    }

    @Test("videos of others are never removed, and undecidable ones are reported")
    func unknown() async throws {
        let end = try VimeoEnd(.fourStep)
        let checkpoint = try await stoppedInEnd(end, try StagedUpload(1500))
        end.server.change { state in
            // A video of the same size with a name, and another one without.
            for (number, fields) in [(8, ["name": "holiday"]), (9, [:])] {
                state.uploads.append(
                    VimeoServer.Upload(number: number, flow: .tus, size: 1500, isVideo: true, fields: fields))
            }
        }
        end.server.change { $0.behaviour.ahead = 700_000 }
        let error = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        #expect(error?.failure.code == .removalUnknown && error?.isConclusive == true, "\(String(describing: error))")
        #expect(end.server.videos.count == 3)
        end.server.change { $0.account.scopes = ["upload", "delete"] }
        let forbidden = await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        #expect(forbidden?.failure.code == .removalUnknown && forbidden?.isConclusive == true)
        end.server.change {
            $0.account.scopes = ["upload", "delete", "private"]
            $0.uploads.removeLast()
        }
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.server.videos.map(\.number) == [8])
    }

    // MARK: A creation with an unusable answer

    private static let noAnswers: [VimeoServer.Garbling] = VimeoServer.Garbling.allCases

    @Test(
        "an unreadable answer to the creation creates no second video: the first one is found",
        arguments: noAnswers, [VimeoFlow.tus, .twoStep])
    func unreadable(_ garbling: VimeoServer.Garbling, _ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.script(.create, .garbled(garbling))
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        let object = try await end.bring(staged, recorder)
        #expect(end.contents == [staged.content])
        #expect(end.server.requests.filter { $0 == "create" }.count == 1)
        #expect(object.id == "/videos/1" && recorder.names.contains("/videos/1"))
    }

    @Test("a foreign video, or that of another upload, is not confused with it")
    func notOurs() async throws {
        let end = try VimeoEnd()
        let staged = try StagedUpload(1500)
        end.server.change { state in
            for (name, bytes, size) in [
                ("clip", 0, 1499), ("another", 0, 1500), ("clip", 700, 1500), ("clip", 1500, 1500),
            ] {
                var other = VimeoServer.Upload(
                    number: state.uploads.count + 1, flow: .tus, size: Int64(size), isVideo: true,
                    fields: ["name": name])
                other.bytes = [UInt8](repeating: 0, count: bytes)
                state.uploads.append(other)
            }
        }
        end.server.script(.create, .answer(200, [], "<html>"))
        let recorder = RecordingReporter()
        let object = try await end.bring(staged, recorder)
        #expect(object.id == "/videos/5")
        #expect(end.server.videos.count == 5)
        #expect(!object.warnings.isEmpty, "the result of the first creation is unknown")
        // The video belongs to another upload of ours, which an earlier process began.
        let taken = try VimeoEnd()
        taken.server.script(.create, .garbled(.html))
        let owned = RecordingReporter()
        owned.owned.withLock { $0 = ["/videos/1"] }
        _ = try await taken.bring(staged, owned)
        #expect(taken.contents == [[], staged.content])
    }

    @Test("if lost creations cannot be looked for, creations become rare, for all files together, and over restarts")
    func bounded() async throws {
        let clocks = ManualClocks()
        var end = try VimeoEnd(clocks: clocks)
        end.server.change { $0.account.scopes = ["upload", "delete"] }
        let recorders = try (0..<4).map { (try StagedUpload(100, id: "0\($0)", seed: UInt64($0)), RecordingReporter()) }
        let server = end.server
        server.change { $0.always[.create] = .garbled(.empty) }
        // A day in which each of four files is tried every five minutes.
        for round in 0..<288 {
            for (staged, recorder) in recorders { _ = try await staged.failure(to: end, recorder) }
            clocks.advance(by: .seconds(300))
            server.change { $0.behaviour.ahead += 300_000 }
            if round == 8 { end = try VimeoEnd(clocks: clocks, server: server) }
        }
        let created = server.state.withLock { $0.uploads.count }
        #expect((4...16).contains(created), "\(created) videos in a day")
    }
}
