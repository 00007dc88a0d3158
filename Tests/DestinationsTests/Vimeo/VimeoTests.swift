import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// The three flows against the emulator.
@Suite("vimeo", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoTests {
    private static let chunk = VimeoEnd.chunk

    @Test(
        "a file of any size becomes one video with its bytes and page, in every flow",
        arguments: VimeoFlow.allCases,
        [1, chunk - 1, chunk, chunk + 1, 3 * chunk + 1])
    func sizes(_ flow: VimeoFlow, _ size: Int) async throws {
        let end = try VimeoEnd(flow)
        let staged = try StagedUpload(size)
        let recorder = RecordingReporter()
        let object = try await end.bring(staged, recorder)
        #expect(end.contents == [staged.content])
        #expect(object.id == "/videos/1")
        #expect(object.url == "https://vimeo.example/1")
        #expect(object.warnings.isEmpty)
        #expect(!recorder.wasEarly, "the checkpoint is recorded before the first byte")
        #expect(end.server.state.withLock { $0.tokensAtBytes } == 0, "only the API gets the token")
        #expect(!recorder.everything.contains("vimeo-token-1"))
    }

    @Test("an empty file is refused without a request", arguments: VimeoFlow.allCases)
    func empty(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        let error = try await StagedUpload(0).failure(to: end)
        #expect(error.remedy == .failUpload)
        #expect(error.failure.code == .emptyFile)
        #expect(end.server.requests.isEmpty)
    }

    @Test(
        "a file that is no video is refused without a request", arguments: ["image/jpeg", "text/plain", "audio/mpeg"])
    func strangers(_ type: String) async throws {
        let end = try VimeoEnd()
        let staged = try StagedUpload(10)
        var order = staged.order
        order.mediaType = type
        let error = await #expect(throws: UploadError.self) {
            try await end.destination.upload(order, reporter: RecordingReporter())
        }
        #expect(error?.failure.code == .notAVideo)
        #expect(end.server.requests.isEmpty)
    }

    @Test(
        "stopped after any note and restarted, there is one complete video, and no accepted byte is sent again",
        arguments: VimeoFlow.allCases)
    func stopped(_ flow: VimeoFlow) async throws {
        for note in 1...40 {
            let end = try VimeoEnd(flow)
            let staged = try StagedUpload(2 * Self.chunk + 1, seed: UInt64(note))
            let recorder = RecordingReporter()
            let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
            let accepted = recorder.accepted
            _ = try await end.bring(staged, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= accepted })
            // If the upload is stopped between the creation and its record, an empty video may be left without a
            // record.
            #expect(end.contents.filter { $0 == staged.content }.count == 1, "stopped at note \(note)")
            #expect(end.contents.allSatisfy { $0 == staged.content || $0.isEmpty })
            if !wasStopped { return }
        }
        Issue.record("the upload was stopped at every note")
    }

    enum Trouble: CaseIterable, Sendable {
        case cutInFirst, cutInSecond, lostReply, unavailable, nothingKept, allLost, fewer, html
    }

    @Test(
        "an interruption, a lost answer and server errors leave exactly one complete video",
        arguments: VimeoFlow.allCases,
        Trouble.allCases)
    func troubles(_ flow: VimeoFlow, _ trouble: Trouble) async throws {
        let end = try VimeoEnd(flow)
        let kind: VimeoServer.Kind = flow == .tus ? .patch : .put
        switch trouble {
        case .cutInFirst: end.server.script(kind, .cut(after: 300))
        case .cutInSecond: end.server.script(kind, .slow(0), .cut(after: 1))
        case .lostReply: end.server.script(kind, .loseReply, .slow(0), .loseReply)
        case .unavailable: end.server.script(kind, .answer(503), .answer(502), .answer(500))
        case .nothingKept:
            end.server.change { $0.behaviour.keeps = .none }
            end.server.script(kind, .cut(after: 900), .cut(after: 900))
        case .allLost:
            // As reported for the service: an interrupted request also loses the earlier bytes.
            end.server.change { $0.behaviour.keeps = .nothing }
            end.server.script(kind, .slow(0), .cut(after: 900))
        case .fewer: end.server.script(kind, .claims(fewer: 200))
        case .html: end.server.script(kind, .answer(503, [("Content-Type", "text/html")], "<html>busy</html>"))
        }
        let staged = try StagedUpload(3 * Self.chunk + 7)
        let object = try await end.bring(staged)
        #expect(end.contents == [staged.content])
        #expect(object.warnings.isEmpty)
    }

    @Test(
        "if Range names the last byte, that byte is sent twice the first time, and then never again",
        arguments: [
            VimeoFlow.twoStep, .fourStep,
        ])
    func lastByte(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.change { $0.behaviour.range = .lastIndex }
        // Its end is requested, since the reply to the last bytes is lost.
        end.server.script(.put, .loseReply)
        let first = try StagedUpload(500, seed: 1)
        _ = try await end.bring(first)
        #expect(end.contents == [first.content])
        let ones = end.server.requests.filter { $0 == "put bytes 499-499/500" }.count
        #expect(ones >= 1)
        end.server.script(.put, .loseReply)
        let second = try StagedUpload(500, id: "02", seed: 2)
        _ = try await end.bring(second)
        #expect(end.contents == [first.content, second.content])
        #expect(end.server.requests.filter { $0 == "put bytes 499-499/500" }.count == ones)
    }

    @Test(
        "a creation with a lost answer: the video is found, or a warning says what may be there",
        arguments: [
            VimeoFlow.tus, .twoStep,
        ])
    func lostCreation(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.script(.create, .loseReply)
        let staged = try StagedUpload(1500)
        let object = try await end.bring(staged)
        #expect(end.contents == [staged.content])
        #expect(object.warnings.isEmpty)
        // If the token may not search for it, another video is created, and that is reported.
        let blind = try VimeoEnd(flow)
        blind.server.change { $0.account.scopes = ["upload"] }
        blind.server.script(.create, .loseReply)
        let other = try await blind.bring(staged)
        #expect(blind.contents == [[], staged.content])
        #expect(other.warnings == ["1 creation(s) got no answer: the remote may hold as many unfinished uploads"])
    }

    @Test("a ticket's end with a lost answer: it is the same video, and no byte is sent again")
    func lostEnd() async throws {
        let end = try VimeoEnd(.fourStep)
        end.server.script(.complete, .loseReply)
        let staged = try StagedUpload(1500)
        let object = try await end.bring(staged)
        #expect(end.contents == [staged.content])
        #expect(object.id == "/videos/1")
        #expect(end.server.state.withLock { $0.received } == 1500)
    }

    @Test("an expired link: the video is removed, and another replaces it", arguments: [404, 410, 403])
    func goneLink(_ status: Int) async throws {
        let end = try VimeoEnd()
        let staged = try StagedUpload(3 * Self.chunk)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: end, recorder, accepting: Self.chunk)
        end.server.script(.head, .answer(status))
        _ = try await end.bring(staged, recorder)
        #expect(end.contents == [staged.content])
        #expect(end.server.requests.filter { $0 == "removal" }.count == 1)
    }

    @Test("an unusable creation is removed, and the destination needs a person")
    func useless() async throws {
        for change in [
            { @Sendable (state: inout VimeoServer.State) in state.account.otherApproach = "post" },
            { @Sendable (state: inout VimeoServer.State) in state.account.hasNoLink = true },
        ] {
            let end = try VimeoEnd()
            end.server.change(change)
            let recorder = RecordingReporter()
            let error = try await StagedUpload(100).failure(to: end, recorder)
            #expect(error.remedy == .misconfigured)
            try await end.sweep(recorder)
            #expect(end.contents.isEmpty)
        }
    }

    @Test("removed at any moment, no remains are left; missing ones count as removed", arguments: VimeoFlow.allCases)
    func discards(_ flow: VimeoFlow) async throws {
        for note in 1...40 {
            let end = try VimeoEnd(flow)
            let staged = try StagedUpload(2 * Self.chunk)
            let recorder = RecordingReporter()
            let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
            let checkpoint = try #require(recorder.last)
            // A requested video that is not visible would have appeared by then.
            end.pass(.seconds(700))
            for _ in 0..<2 { #expect(try await end.destination.discard(checkpoint)) }
            // Only a creation without a record.
            if checkpoint["url"] != nil { #expect(end.contents.isEmpty, "removed after note \(note)") }
            if !wasStopped { return }
        }
        Issue.record("the upload was stopped at every note")
    }

    @Test("a temporarily refused removal is an error, and one without the token's permission is not")
    func refusedRemoval() async throws {
        let end = try VimeoEnd()
        let checkpoint = Checkpoint(["video": "/videos/7"])
        end.server.script(.removal, .answer(503), .answer(500))
        for _ in 0..<2 {
            await #expect(throws: UploadError.self) { try await end.destination.discard(checkpoint) }
        }
        end.server.change { $0.account.scopes = ["upload"] }
        #expect(try await end.destination.discard(checkpoint) == false)
    }

    @Test(
        "stopped during its creation, the name is received and recorded, so that it can be removed",
        arguments: VimeoFlow.allCases)
    func stoppedInCreation(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.script(.create, .held)
        let staged = try StagedUpload(100)
        let recorder = RecordingReporter()
        let task = Task { try await staged.send(to: end, recorder) }
        try await eventually("the creation has been requested") { end.server.requests.contains("create") }
        task.cancel()
        end.server.answerHeld()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        let checkpoint = try #require(recorder.last)
        #expect(checkpoint["url"] != nil)
        #expect(try await end.destination.discard(checkpoint))
        #expect(end.contents.isEmpty)
    }

    @Test("any API answer is handled, with only displayable text shown, and no token")
    func lies() async throws {
        let good = [
            #"{"uri": "/videos/1", "link": "https://vimeo.example/1", "upload": {"approach": "tus", "upload_link": "http://127.0.0.1:1/x"}}"#,
            #"{"error": "no", "error_code": 4101, "invalid_parameters": [{"field": "a", "error_code": 2552}]}"#,
            #"{"upload_quota": {"space": {"free": 1, "max": 2, "used": 1, "unit": "video_count", "showing": "periodic"}, "periodic": {"reset_date": "2026-01-01T00:00:00Z"}}}"#,
        ].map { Array($0.utf8) }
        let words = ["null", "\"\\u0000\"", "[[[[", "\"uri\": ", "/videos/", "vimeo-token-1", "\u{1B}[31m"]
        try await Fuzz("vimeo answers", rounds: 300).each(Mutator(good, words: words)) { round in
            let end = try VimeoEnd()
            var dice = Dice(seed: round.seed)
            let text = String(decoding: round.input, as: UTF8.self)
            for kind in [VimeoServer.Kind.create, .me, .video] {
                let status = [200, 201, 400, 401, 403, 404, 429, 500].randomElement(using: &dice) ?? 200
                end.server.script(kind, .answer(status, [], text))
            }
            let recorder = RecordingReporter()
            do {
                let object = try await StagedUpload(10).send(to: end, recorder)
                try round.expect(
                    [object.id, object.url].allSatisfy { $0.map { printable($0) == $0 } ?? true }, "\(object)")
            } catch let error as UploadError {
                try round.expect(
                    printable(error.failure.message) == error.failure.message,
                    "the message has control characters: \(printable(error.failure.message))")
                try round.expect(!error.failure.message.contains("vimeo-token-1"), "the message shows the token")
                try round.expect(!error.remedy.restages, "a server's answer causes another staging")
            }
            _ = await end.destination.check()
            try await end.close()
        }
    }
}
