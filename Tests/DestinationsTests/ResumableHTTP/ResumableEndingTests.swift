import Core
import Destinations
import TestKit
import Testing

/// The end of an upload: completion is explicit, and the final answer of the target decides.
@Suite("Final answers of resumable uploads", .timeLimit(.minutes(Patience.minutes(2))))
struct ResumableEndingTests {
    /// An upload whose bytes are all at the server, where the last answer was lost before it completed.
    private func whole(_ change: (inout ResumableServer.Options) -> Void = { _ in }) throws -> (
        ResumableServer, Checkpoint, [UInt8]
    ) {
        var options = ResumableServer.Options()
        change(&options)
        let server = try ResumableServer(options)
        let content = noise(ResumableScene.size)
        var upload = ResumableServer.Upload()
        (upload.length, upload.held, upload.name) = (content.count, content, "clip.mp4")
        server.set("/u/1", upload)
        let checkpoint = Checkpoint([
            "url": "http://127.0.0.1:\(server.port)/u/1", "server": "http://127.0.0.1:\(server.port)", "offset": "400",
            "taken": "400", "reach": "1000", "may_be_whole": "1", "interop": "9",
        ])
        return (server, checkpoint, content)
    }

    @Test("an offset at the end is not complete: an empty append completes the upload")
    func explicit() async throws {
        let (server, checkpoint, content) = try whole()
        let journey = try ResumableScene.journey(server, checkpoint: checkpoint)
        let object = try await journey.attempt()
        #expect(server.requests == ["HEAD", "PATCH 1000 ?1 0"])
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        #expect(server.finished == [content] && server.violations.isEmpty)
    }

    @Test("the request that completes is repeated only after a question", arguments: [true, false])
    func lostCompletion(_ isDone: Bool) async throws {
        let (server, checkpoint, content) = try whole()
        let journey = try ResumableScene.journey(server, checkpoint: checkpoint)
        server.plan("PATCH", isDone ? .lostAnswer : .drop)
        #expect(try await journey.failedAttempt().remedy == .holdDestination(after: nil))
        #expect(journey.ledger.last?["concluding"] == "offset")
        // Another process.
        let second = try ResumableScene.journey(server, checkpoint: journey.ledger.last)
        let object = try await second.attempt()
        #expect(server.requests == ["HEAD", "PATCH 1000 ?1 0", "HEAD"] + (isDone ? [] : ["PATCH 1000 ?1 0"]))
        #expect(object.verifiedBy == (isDone ? "offset_unanswered" : "offset"))
        #expect(object.warnings.count == (isDone ? 1 : 0), "\(object.warnings)")
        #expect(server.finished == [content])
    }

    @Test("a server that says `?0` to the last bytes gets the completing request")
    func answeredIncomplete() async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .partial(1000))
        let object = try await scene.journey.attempt()
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?1 1000", "HEAD", "PATCH 1000 ?1 0"])
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        scene.expectArrived()
    }

    @Test(
        "a final answer that refuses fails the file, whatever its status, and nothing is asked or sent after it",
        arguments: [400, 403, 404, 408, 413, 415, 422, 429, 500, 502, 503, 507])
    func refused(_ status: Int) async throws {
        let scene = try ResumableScene(chunk: 600) { $0.final = (status, [("Retry-After", "5")], "no room for cats") }
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == .failUpload && error.failure.code == .refusedAtEnd && error.failure.http == status)
        #expect(error.failure.message.contains("no room for cats"))
        #expect(error.failure.message.contains("final answer") && !error.failure.retryable)
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?0 600", "PATCH 600 ?1 400"])
        // A crash before the upload was stored as failed.
        let second = try ResumableScene.journey(scene.server, checkpoint: scene.journey.ledger.last)
        #expect(try await second.failedAttempt().failure.code == .refusedAtEnd)
        #expect(scene.server.requests.count == 3)
    }

    @Test("409 with the mark: a refusal of the file for new bytes, and none for bytes that were there")
    func markedConflict() async throws {
        let scene = try ResumableScene { $0.final = (409, [], "the name is taken") }
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == .failUpload && error.failure.code == .refusedAtEnd && error.failure.http == 409)
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?1 1000", "HEAD"])
        // The upload was completed by a request whose answer was lost, and the offset came from a cache.
        let repeated = try ResumableScene(chunk: 600) { ($0.style, $0.versions) = (.swiftNIO, ["6"]) }
        repeated.server.plan("PATCH", .none, .lostAnswer)
        let cached = ResumableServer.Fault.answer(204, [("Upload-Offset", "600"), ("Upload-Complete", "?0")])
        let complete = ResumableServer.Fault.answer(204, [("Upload-Offset", "1000"), ("Upload-Complete", "?1")])
        repeated.server.plan("HEAD", cached, complete, complete)
        let (object, _) = try await repeated.journey.arrive()
        #expect(object.verifiedBy == "offset_unanswered")
        #expect(object.warnings.count == 1 && object.warnings[0].contains("409"), "\(object.warnings)")
        #expect(repeated.server.finished == [repeated.journey.content])
    }

    @Test("a person's retry after a final refusal begins a new upload")
    func retried() async throws {
        let scene = try ResumableScene { $0.final = (422, [], "no") }
        _ = try await scene.journey.failedAttempt()
        scene.server.change { $0.final = (200, [], "") }
        var journey = scene.journey
        journey.order.generation = 2
        let object = try await journey.attempt()
        #expect(object.warnings.contains { $0.contains("sent again after the server had refused it at its end (422)") })
        #expect(scene.server.requests.filter { $0 == "POST ?0" }.count == 2)
        #expect(scene.server.finished == [scene.journey.content])
    }

    @Test("`final_error: accept` completes a refused file only if the server says that it is complete")
    func accepted() async throws {
        let scene = try ResumableScene(values: ["final_error": .text("accept")]) { $0.final = (500, [], "scan failed") }
        let object = try await scene.journey.attempt()
        #expect(object.warnings.count == 1 && object.warnings[0].contains("scan failed"), "\(object.warnings)")
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?1 1000", "HEAD"])
        let gone = try ResumableScene(values: ["final_error": .text("accept")]) {
            $0.final = (500, [], "scan failed")
            $0.keepsFinished = false
        }
        #expect(try await gone.journey.failedAttempt().failure.code == .refusedAtEnd)
        #expect(gone.server.requests.filter { $0.hasPrefix("P") } == ["POST ?0", "PATCH 0 ?1 1000"])
    }

    @Test("the same for the request that completes", arguments: ["fail", "accept"])
    func refusedCompletion(_ policy: String) async throws {
        let (server, checkpoint, _) = try whole { $0.final = (403, [], "virus") }
        let journey = try ResumableScene.journey(
            server, values: ["final_error": .text(policy)], checkpoint: checkpoint)
        if policy == "fail" {
            let error = try await journey.failedAttempt()
            #expect(error.failure.code == .refusedAtEnd && error.failure.message.contains("virus"))
            #expect(try await journey.failedAttempt().failure.code == .refusedAtEnd)
            #expect(server.requests == ["HEAD", "PATCH 1000 ?1 0"])
        } else {
            let object = try await journey.attempt()
            #expect(object.warnings.contains { $0.contains("virus") })
            #expect(server.requests == ["HEAD", "PATCH 1000 ?1 0", "HEAD"])
        }
    }

    @Test(
        "a final answer before the last byte ends the upload: refused, or completed too early", arguments: [415, 200])
    func early(_ status: Int) async throws {
        let scene = try ResumableScene(chunk: 400)
        scene.server.plan("PATCH", .none, .answer(status, [("Upload-Complete", "?1")], "enough"))
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == .failUpload && error.failure.code == .refusedAtEnd && error.failure.http == status)
        // A success may be the repeated answer of a complete upload.
        let asked = status == 200 ? ["HEAD"] : []
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?0 400", "PATCH 400 ?0 400"] + asked)
    }

    @Test("a final answer that is repeated, because the offset was too low, is no early end")
    func repeated() async throws {
        let scene = try ResumableScene(chunk: 400)
        scene.server.plan(
            "PATCH", .none, .none, .lostAnswer, .answer(200, [("Upload-Complete", "?1")]))
        scene.server.plan("HEAD", .answer(204, [("Upload-Offset", "400"), ("Upload-Complete", "?0")]))
        let (object, _) = try await scene.journey.arrive()
        #expect(object.verifiedBy == "offset_unanswered" && object.warnings.count == 1, "\(object)")
        #expect(scene.server.requests.filter { $0.hasPrefix("PATCH") }.count == 4)
        scene.expectArrived()
    }

    @Test(
        "a refusal without the mark: HEAD decides, and the file fails if nothing was accepted",
        arguments: [400, 403, 422])
    func unmarked(_ status: Int) async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .answer(status, [], "no"), .answer(status, [], "no"))
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == (status == 403 ? .authenticate : .failUpload))
        #expect(!scene.server.finished.contains(scene.journey.content))
        #expect(scene.server.requests.contains("HEAD"))
    }

    @Test("5xx without the mark is no verdict: the offset is asked, and the upload goes on")
    func temporary() async throws {
        let scene = try ResumableScene(chunk: 400)
        scene.server.plan("PATCH", .answer(503, [("Retry-After", "7")]), .none, .answer(502), .none, .answer(500))
        let (object, errors) = try await scene.journey.arrive()
        #expect(errors.first?.remedy == .holdDestination(after: .seconds(7)) && errors.count == 3)
        #expect(object.warnings.isEmpty && object.verifiedBy == "offset")
        scene.expectArrived()
    }

    @Test("an append to a finished upload is refused as such, and the upload counts as complete")
    func alreadyComplete() async throws {
        let (server, checkpoint, content) = try whole()
        let journey = try ResumableScene.journey(server, checkpoint: checkpoint)
        server.plan("PATCH", .lostAnswer)
        server.plan("HEAD", .none, .answer(204, [("Upload-Offset", "1000"), ("Upload-Complete", "?0")]))
        _ = try await journey.failedAttempt()
        let object = try await journey.attempt()
        #expect(server.requests == ["HEAD", "PATCH 1000 ?1 0", "HEAD", "PATCH 1000 ?1 0", "HEAD"])
        #expect(object.verifiedBy == "offset_unanswered" && server.finished == [content])
    }

    @Test("the address of the finished file is kept if the final answer names one that is no secret")
    func remote() async throws {
        func url(_ location: String) async throws -> (String?, ResumableServer) {
            let scene = try ResumableScene { $0.final = (201, [("Location", location)], "{\"id\": 7}") }
            let object = try await scene.journey.attempt()
            #expect(object.id == nil)
            return (object.url, scene.server)
        }
        let (named, server) = try await url("/albums/7.mp4")
        #expect(named == "http://127.0.0.1:\(server.port)/albums/7.mp4")
        #expect(try await url("/u/1").0 == nil)
        #expect(try await url("/albums/7?signature=x").0 == nil)
        #expect(try await url("http://a:b@h/7").0 == nil)
    }

    @Test("gone after its last byte may have been sent: `gone` decides", arguments: ["reupload", "hold"])
    func gone(_ policy: String) async throws {
        let scene = try ResumableScene(values: ["gone": .text(policy)]) { $0.keepsFinished = false }
        scene.server.plan("PATCH", .lostAnswer)
        _ = try await scene.journey.failedAttempt()
        if policy == "hold" {
            #expect(try await scene.journey.failedAttempt().failure.code == .outcomeUnknown)
            #expect(scene.server.finished.count == 1)
        } else {
            let object = try await scene.journey.attempt()
            #expect(object.warnings.contains { $0.contains("sent twice") })
            #expect(scene.server.finished.count == 2)
        }
    }

    @Test("gone when it only had to be completed: the same", arguments: ["reupload", "hold", "assume_complete"])
    func goneWhole(_ policy: String) async throws {
        let (server, checkpoint, content) = try whole { $0.keepsFinished = false }
        let journey = try ResumableScene.journey(server, values: ["gone": .text(policy)], checkpoint: checkpoint)
        server.plan("PATCH", .lostAnswer)
        _ = try await journey.failedAttempt()
        if policy == "hold" {
            #expect(try await journey.failedAttempt().failure.code == .outcomeUnknown)
        } else {
            let (object, _) = try await journey.arrive()
            #expect(object.warnings.contains { $0.contains("sent twice") })
            #expect(server.finished == [content, content])
        }
    }

    @Test("an upload that was completed with other bytes is another one")
    func foreign() async throws {
        let (server, checkpoint, content) = try whole()
        var upload = ResumableServer.Upload()
        (upload.held, upload.isComplete) = ([1, 2, 3], true)
        server.set("/u/1", upload)
        server.change { $0.style = .terse }
        var early = checkpoint
        early["may_be_whole"] = nil
        let journey = try ResumableScene.journey(server, checkpoint: early)
        _ = try await journey.arrive()
        #expect(server.finished == [content])
    }
}
