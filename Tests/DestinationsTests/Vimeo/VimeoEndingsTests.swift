import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// The outcome for a video, an account and a token.
@Suite("vimeo: ends and refusals", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoEndingsTests {
    @Test(
        "an upload that must be transcoded waits without an attempt, checked less and less often, until it is",
        arguments: VimeoFlow.allCases)
    func transcoded(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow, ["verify": .text("transcoded")])
        end.server.change {
            $0.behaviour.states = ["transcode_starting", "transcoding", "a word of next year", "available"]
        }
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        var waits: [Duration] = []
        for _ in 0..<3 {
            let error = try await staged.failure(to: end, recorder)
            guard case .pending(let wait) = error.remedy else { throw error }
            waits.append(wait)
        }
        #expect(waits == [.seconds(15), .seconds(30), .seconds(60)])
        let object = try await staged.send(to: end, recorder)
        #expect(object.verifiedBy == "transcoded")
        #expect(end.server.state.withLock { $0.received } == 1500)
        #expect(recorder.sent.isEmpty, "a query sends no bytes of the file")
    }

    @Test("a wrong offset is queried again while the service says that bytes are missing, and they are sent")
    func staleOffset() async throws {
        let end = try VimeoEnd(.tus, ["chunk_size": .bytes(0)])
        end.server.script(.patch, .cut(after: 1000))
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        _ = try await staged.failure(to: end, recorder)
        end.server.script(.head, .answer(200, [("Upload-Offset", "1500"), ("Upload-Length", "1500")]))
        let object = try await staged.send(to: end, recorder)
        #expect(object.id != nil)
        #expect(end.server.state.withLock { $0.received } == 1500)
        #expect(end.server.state.withLock { $0.uploads.count } == 1)
    }

    @Test(
        "an upload that need not be transcoded completes when the service has accepted it, whatever the transcode result"
    )
    func transfer() async throws {
        let end = try VimeoEnd()
        end.server.change { $0.behaviour.states = ["transcoding"] }
        let object = try await StagedUpload(1500).send(to: end, RecordingReporter())
        #expect(object.verifiedBy == "offset")
    }

    @Test(
        "a quota reported after the last byte removes the video, holds the account, and sends it again",
        arguments: [
            "quota_exceeded", "total_cap_exceeded",
        ], VimeoFlow.allCases)
    func lateQuota(_ status: String, _ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow, clocks: ManualClocks(wall: WallTime(milliseconds: 0)))
        end.server.change {
            $0.behaviour.states = [status]
            $0.account.reset = "1970-01-08T00:00:00+00:00"
        }
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        let error = try await staged.failure(to: end, recorder)
        guard case .outOfSpace(let wait?) = error.remedy else { throw error }
        #expect(wait > .seconds(5 * 86_400) && wait <= .seconds(7 * 86_400))
        #expect(error.failure.kind == .quota)
        try await end.sweep(recorder)
        #expect(end.contents.isEmpty)
        end.server.change { $0.behaviour.states = ["available"] }
        _ = try await end.bring(staged, recorder)
        #expect(end.contents == [staged.content])
    }

    @Test("after a late quota without a known reset, the next attempt waits a day")
    func lateQuotaOfNoDay() async throws {
        let end = try VimeoEnd()
        end.server.change {
            $0.behaviour.states = ["total_cap_exceeded"]
            $0.account.quota = nil
        }
        #expect(try await StagedUpload(1500).failure(to: end).remedy == .outOfSpace(after: .seconds(86_400)))
    }

    @Test(
        "an answer that does not come from the service is not applied to the video: it is queried again",
        arguments: [
            "<html>busy</html>", "{}", "[]",
            "{\"uri\": \"/videos/1\", \"status\": 5, \"upload\": 5, \"transcode\": [1]}",
            "{\"uri\": \"/videos/1\", \"status\": \"frobnicating\"}",
        ])
    func noWord(_ text: String) async throws {
        let end = try VimeoEnd()
        end.server.script(.video, .answer(200, [], text))
        let staged = try StagedUpload(1500)
        let recorder = RecordingReporter()
        let error = try await staged.failure(to: end, recorder)
        guard case .pending = error.remedy else { throw error }
        _ = try await staged.send(to: end, recorder)
        #expect(end.server.state.withLock { $0.received } == 1500)
    }

    @Test("impossible account numbers are unknown")
    func impossibleQuota() async throws {
        let end = try VimeoEnd()
        for numbers in [
            "\"free\": null, \"max\": -9223372036854775808, \"used\": 9223372036854775807",
            "\"free\": -1, \"max\": -1, \"used\": -9223372036854775808",
        ] {
            end.server.script(.me, .answer(200, [], "{\"upload_quota\": {\"space\": {\(numbers)}}}"))
            let space = try await end.destination.space()
            #expect(space?.left == nil)
        }
        #expect(RemoteSpace(used: .max, limit: .min).left == 0)
    }

    @Test("an answer without a list is an error, and not an empty account", arguments: ["<html>", "{\"data\": 5}"])
    func noList(_ text: String) async throws {
        let end = try VimeoEnd()
        end.server.script(.list, .answer(200, [], text))
        await #expect(throws: UploadError.self) { try await end.destination.list(after: nil) }
    }

    @Test("a password is not shown, even if the service repeats it")
    func password() async throws {
        let end = try VimeoEnd(
            .tus,
            [
                "video.password": .secret(.literal("open-sesame")),
                "video.privacy.view": .template(try Template("password")),
            ])
        end.server.script(.create, .answer(400, [], "{\"error\": \"open-sesame is too weak\", \"error_code\": 2273}"))
        var order = try StagedUpload(10).order
        let staged = try StagedUpload(10)
        order = staged.order
        order.metadata = ["video.privacy.view": "password"]
        let error = await #expect(throws: UploadError.self) {
            try await end.destination.upload(order, reporter: RecordingReporter())
        }
        #expect(error?.failure.message.contains("*** is too weak") == true, "\(String(describing: error))")
    }

    @Test("a signed address is not shown, even if the service repeats it")
    func addresses() async throws {
        let tus = try VimeoEnd(.tus)
        tus.server.script(.patch, .answer(422, [], "Cannot PATCH /upload/1?signature=s1"))
        let ticket = try VimeoEnd(.fourStep)
        ticket.server.script(
            .complete, .answer(500, [], "{\"error\": \"no /users/1/uploads/1?video_file_id=1001&signature=c1\"}"))
        for (end, expected) in [(tus, "Cannot PATCH ***"), (ticket, "no ***")] {
            let message = try await StagedUpload(10).failure(to: end).failure.message
            #expect(message.contains(expected) && !message.contains("signature"), "\(message)")
        }
    }

    @Test("a file that cannot be transcoded fails alone, and so does a deleted video")
    func rejected() async throws {
        let end = try VimeoEnd()
        end.server.change { $0.behaviour.states = ["transcoding_error"] }
        let recorder = RecordingReporter()
        let error = try await StagedUpload(1500).failure(to: end, recorder)
        #expect(error.remedy == .failUpload)
        #expect(error.failure.code == .transcodingFailed)
        try await end.sweep(recorder)
        #expect(end.contents.isEmpty)
        let other = try VimeoEnd()
        other.server.change { $0.always[.video] = .answer(404, [], "{\"error\": \"not found\"}") }
        let gone = await #expect(throws: UploadError.self) { try await other.bring(try StagedUpload(1500)) }
        #expect(gone?.failure.code == .videoDeleted)
        let third = try VimeoEnd()
        third.server.change { $0.behaviour.states = ["uploading_error"] }
        let staged = try StagedUpload(1500)
        let journal = RecordingReporter()
        #expect(try await staged.failure(to: third, journal).remedy == .refused(after: .seconds(60)))
        third.server.change { $0.behaviour.states = ["available"] }
        _ = try await third.bring(staged, journal)
        // A service that never keeps the bytes does not get them for ever.
        let fourth = try VimeoEnd()
        fourth.server.change { $0.behaviour.states = ["uploading_error"] }
        let hopeless = RecordingReporter()
        let last = await #expect(throws: UploadError.self) { try await fourth.bring(staged, hopeless) }
        #expect(last?.remedy == .failUpload)
        #expect(fourth.server.state.withLock { $0.received } == 3 * 1500)
        #expect(third.contents == [staged.content])
    }

    @Test("a refusal for quota holds the account until its day, and 3428 fails only the file")
    func quota() async throws {
        let end = try VimeoEnd(clocks: ManualClocks(wall: WallTime(milliseconds: 0)))
        end.server.change {
            $0.account.quota = (100, 1000, false)
            $0.account.reset = "1970-01-03T00:00:00Z"
        }
        let error = try await StagedUpload(1500).failure(to: end)
        guard case .outOfSpace(let wait?) = error.remedy else { throw error }
        #expect(wait > .seconds(86_400) && wait <= .seconds(2 * 86_400))
        #expect(error.failure.code == .vimeo(4102))
        #expect(
            try await end.destination.space()
                == RemoteSpace(free: 100, used: 900, limit: 1000, resetsAt: WallTime(milliseconds: 172_800_000)))
        end.server.change { $0.account.quota = (0, 2, true) }
        #expect(try await end.destination.space()?.unit == .files)
        #expect(try await StagedUpload(1).failure(to: end).failure.code == .vimeo(4104))
        end.server.change { $0.account.quota = nil }
        #expect(try await end.destination.space() == nil, "a missing quota means unknown space")
        end.server.change { $0.account.largest = 1000 }
        let tooLarge = try await StagedUpload(1500).failure(to: end)
        #expect(tooLarge.remedy == .failUpload)
        #expect(tooLarge.failure.code == .vimeo(3428))
    }

    @Test(
        "429 delays only the API until the given time, as a date, in seconds, or absent",
        arguments: [
            ("1970-01-01T00:02:00Z", 120), ("120", 120), ("", 60), ("0", 60), ("9999999999", 60),
        ])
    func rateLimit(_ reset: String, _ seconds: Int) async throws {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 0))
        let end = try VimeoEnd(clocks: clocks)
        end.server.script(.create, .answer(429, reset.isEmpty ? [] : [("X-RateLimit-Reset", reset)]))
        let staged = try StagedUpload(1500)
        let error = try await staged.failure(to: end)
        #expect(error.remedy == .rateLimit(after: .seconds(seconds)))
        let before = end.server.requests.count
        let again = try await staged.failure(to: end)
        guard case .rateLimit = again.remedy else { throw again }
        #expect(end.server.requests.count == before, "no request is sent before that time")
        clocks.advance(by: .seconds(seconds + 1))
        _ = try await staged.send(to: end, RecordingReporter())
        #expect(end.contents == [staged.content])
    }

    @Test("a renewed token is read again within a request; an invalid one holds; no answer shows it")
    func tokens() async throws {
        let end = try VimeoEnd()
        let recorder = RecordingReporter()
        _ = try await StagedUpload(10, id: "1").send(to: end, RecordingReporter())
        end.server.change { $0.account.token = "vimeo-token-2" }
        let error = try await StagedUpload(10, id: "2").failure(to: end, recorder)
        #expect(error.remedy == .authenticate)
        #expect(error.failure.kind == .auth)
        #expect(!"\(error)".contains("vimeo-token"))
        try Files.replace(end.tokenFile, with: Array("vimeo-token-2".utf8))
        _ = try await StagedUpload(10, id: "2").send(to: end, recorder)
        #expect(end.contents.count == 2)
        end.server.change { $0.account.hasUser = false }
        let count = end.server.requests.count
        #expect(try await StagedUpload(10, id: "3").failure(to: end).remedy == .authenticate)
        #expect(end.server.requests.count == count + 1, "8002 is not caused by an old token")
    }

    @Test(
        "with disabled streaming flows the hold names the flow that works",
        arguments: [VimeoFlow.twoStep, .fourStep])
    func streamingIsOff(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow)
        end.server.change { $0.account.isLegacy = false }
        let error = try await StagedUpload(10).failure(to: end)
        #expect(error.remedy == .misconfigured)
        #expect(error.failure.message.contains("set `flow: tus`"))
    }

    @Test("metadata refused for a ticket's video is tried again, and then a warning, with no byte sent twice")
    func settingsFail() async throws {
        let end = try VimeoEnd(.fourStep)
        end.server.script(.settings, .answer(503), .answer(500))
        let staged = try StagedUpload(1500)
        var object = try await end.bring(staged)
        #expect(object.warnings.isEmpty)
        #expect(end.server.videos.first?.fields["name"] == "clip")
        let other = try VimeoEnd(.fourStep)
        other.server.change { $0.account.scopes = ["upload", "private"] }
        object = try await other.bring(staged)
        #expect(object.warnings.count == 1)
        #expect(object.warnings.first?.contains("scope edit") == true, "\(object.warnings)")
        #expect(other.contents == [staged.content])
        #expect(other.server.state.withLock { $0.received } == 1500)
    }

    @Test("the check names missing permissions of the token, and the quota")
    func check() async throws {
        let end = try VimeoEnd()
        let good = await end.destination.check()
        #expect(good.verdict == .ok, "\(good.detail)")
        #expect(good.space != nil)
        end.server.change { $0.account.scopes = ["upload", "public"] }
        let less = await end.destination.check()
        #expect(less.verdict == .warning)
        #expect(less.detail.contains("`delete`") && less.detail.contains("`private`"), "\(less.detail)")
        end.server.change { $0.account.scopes = ["public"] }
        let none = await end.destination.check()
        #expect(none.verdict == .failed)
        #expect(none.detail.contains("`upload`"))
        end.server.change { $0.account.token = "other" }
        let dead = await end.destination.check()
        #expect(dead.verdict == .failed)
        #expect(dead.detail.contains("check the token"), "\(dead.detail)")
    }

    @Test(
        "each error number has its own reaction",
        arguments: [
            (400, 2205, Remedy.failUpload), (400, 2233, .failUpload), (403, 2411, .failUpload),
            (403, 3400, .authenticate),
            (403, 4101, .outOfSpace(after: nil)), (500, 4003, .holdDestination(after: nil)),
            (503, 7100, .holdDestination(after: nil)),
            (400, 3116, .misconfigured), (404, 5000, .misconfigured), (403, 1, .authenticate),
            (500, 1, .holdDestination(after: nil)),
            (422, 1, .failUpload),
        ])
    func numbers(_ status: Int, _ number: Int, _ remedy: Remedy) async throws {
        for (headers, body) in [
            ([], "{\"error\": \"no\", \"error_code\": \(number)}"),
            ([], "{\"error\": \"no\", \"error_code\": \"\(number)\"}"),
            ([("Vimeo-Error-Code", "\(number)")], "<html>"),
        ] {
            let end = try VimeoEnd()
            end.server.change { $0.account.quota = nil }
            end.server.script(.create, .answer(status, headers, body))
            let error = try await StagedUpload(10).failure(to: end)
            #expect(error.remedy == remedy, "\(status) \(number) \(body)")
        }
    }
}
