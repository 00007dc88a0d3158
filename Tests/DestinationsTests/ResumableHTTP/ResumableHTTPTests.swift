import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// Uploads by the draft, with servers that keep its rules (section 11 of the notes on the protocol, line by line).
@Suite("Resumable Uploads for HTTP", .timeLimit(.minutes(Patience.minutes(2))))
struct ResumableHTTPTests {
    @Test("careful creation: the address is recorded before a byte leaves, and the last append completes")
    func creates() async throws {
        let scene = try ResumableScene(chunk: 400)
        let object = try await scene.journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty && object.url == nil)
        #expect(
            scene.server.requests
                == ["POST ?0", "PATCH 0 ?0 400", "PATCH 400 ?0 400", "PATCH 800 ?1 200", "HEAD"])
        let upload = try #require(scene.server.uploads.first)
        #expect(upload.name == "clip.mp4" && upload.type == "video/mp4" && upload.length == 1000)
        let first = try #require(scene.journey.ledger.book.withLock { $0.checkpoints.first { $0["url"] != nil } })
        #expect(first["interop"] == "9" && first["reach"] == "400" && first["offset"] == "0")
        scene.expectArrived()
    }

    @Test("files of every size arrive once", arguments: [1, 399, 400, 401, 1200, 1201])
    func sizes(_ size: Int) async throws {
        let scene = try ResumableScene(size: size, chunk: 400)
        _ = try await scene.journey.attempt()
        scene.expectArrived()
    }

    @Test("an empty file is complete with one request", arguments: [true, false])
    func empty(_ keeps: Bool) async throws {
        let scene = try ResumableScene(size: 0) { $0.keepsFinished = keeps }
        let object = try await scene.journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        // As after a crash before *completed* was stored.
        _ = try await scene.journey.attempt()
        #expect(scene.server.requests == ["POST ?1"])
        #expect(try await scene.journey.destination.discard(try #require(scene.journey.ledger.last)) == false)
        #expect(scene.server.removed == 0)
        scene.expectArrived()
    }

    @Test("interim answers with addresses and progress disturb nothing")
    func interim() async throws {
        let scene = try ResumableScene(size: 400_000) { $0.interimEvery = 1 }
        _ = try await scene.journey.attempt()
        scene.expectArrived()
    }

    @Test("a server that answers as tusd does needs no other requests")
    func tusd() async throws {
        let scene = try ResumableScene(chunk: 400) {
            $0.style = .tusd
            $0.versions = ["3", "4", "5", "6"]
            $0.mismatch = .refuse(
                412, "ERR_UNSUPPORTED_VERSION: missing, invalid or unsupported Tus-Resumable header\n")
        }
        let object = try await scene.journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        #expect(
            scene.server.requests
                == ["POST ?0", "PATCH 0 ?0 400", "PATCH 400 ?0 400", "PATCH 800 ?1 200", "HEAD"])
        #expect(scene.server.uploads.first?.version == "6")
        scene.expectArrived()
    }

    @Test("a server that answers as the source of swift-nio-extras says: its version is found, and a cut is continued")
    func swiftNIO() async throws {
        let scene = try ResumableScene(chunk: 400) {
            ($0.style, $0.versions, $0.refusesOptions, $0.keepsFinished) = (.swiftNIO, ["6"], true, false)
            $0.mismatch = .refuse(400, "", [("Upload-Draft-Interop-Version", "6")])
            $0.interimEvery = 100
        }
        scene.server.plan("PATCH", .none, .cut(100))
        let (object, _) = try await scene.journey.arrive()
        #expect(object.verifiedBy == "acknowledgement" && object.warnings.isEmpty)
        #expect(
            scene.server.all == [
                "OPTIONS", "OPTIONS", "POST ?0", "PATCH 0 ?0 400", "PATCH 400 ?0 400", "HEAD", "PATCH 500 ?0 400",
                "PATCH 900 ?1 100", "HEAD",
            ])
        scene.expectArrived()
        // Without an answer to OPTIONS, the refusal of the creation names the version.
        let other = try ResumableScene {
            ($0.style, $0.versions, $0.isAnnounced) = (.swiftNIO, ["6"], false)
            $0.mismatch = .refuse(400, "", [("Upload-Draft-Interop-Version", "6")])
        }
        _ = try await other.journey.attempt()
        #expect(other.server.requests.prefix(2) == ["POST ?0", "POST ?0"])
        other.expectArrived()
        let refused = try ResumableScene {
            ($0.style, $0.versions, $0.final) = (.swiftNIO, ["6"], (415, [], "no film"))
        }
        #expect(try await refused.journey.failedAttempt().failure.code == .refusedAtEnd)
    }

    @Test("a server that names nothing is asked after each append", arguments: [true, false])
    func terse(_ keeps: Bool) async throws {
        let scene = try ResumableScene(chunk: 600, values: ["gone": .text("assume_complete")]) {
            $0.style = .terse
            $0.keepsFinished = keeps
        }
        let object = try await scene.journey.attempt()
        #expect(object.verifiedBy == (keeps ? "offset" : "assumption"), "\(object)")
        #expect(scene.server.requests.filter { $0.hasPrefix("PATCH") } == ["PATCH 0 ?0 600", "PATCH 600 ?1 400"])
        scene.expectArrived()
    }

    @Test("an upload whose address is gone after the final answer is acknowledged")
    func goneAfterwards() async throws {
        let scene = try ResumableScene { $0.keepsFinished = false }
        let object = try await scene.journey.attempt()
        #expect(object.verifiedBy == "acknowledgement" && object.warnings.isEmpty)
        scene.expectArrived()
    }

    @Test("cut: only the offset is asked, and the missing bytes follow")
    func cut() async throws {
        let scene = try ResumableScene(size: 300_000)
        scene.server.plan("PATCH", .cut(100_000), .cut(1))
        let (object, errors) = try await scene.journey.arrive()
        #expect(errors.allSatisfy { $0.remedy == .holdDestination(after: nil) } && errors.count == 2)
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        #expect(
            scene.server.requests
                == [
                    "POST ?0", "PATCH 0 ?1 300000", "HEAD", "PATCH 100000 ?1 200000", "HEAD", "PATCH 100001 ?1 199999",
                    "HEAD",
                ])
        scene.expectArrived()
    }

    @Test("lost answers: to a creation one more upload, to bytes no byte twice, to the last ones a question")
    func lost() async throws {
        let scene = try ResumableScene(chunk: 400)
        scene.server.plan("POST", .lostAnswer)
        scene.server.plan("PATCH", .lostAnswer, .none, .lostAnswer)
        let (object, _) = try await scene.journey.arrive()
        #expect(object.verifiedBy == "offset_unanswered")
        #expect(object.warnings.count == 2 && object.warnings.contains { $0.contains("1 creation(s) got no answer") })
        #expect(
            scene.server.requests
                == [
                    "POST ?0", "POST ?0", "PATCH 0 ?0 400", "HEAD", "PATCH 400 ?0 400", "PATCH 800 ?1 200", "HEAD",
                ])
        scene.expectArrived()
    }

    @Test("part of a body that is kept is continued")
    func partial() async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .partial(300))
        _ = try await scene.journey.attempt()
        #expect(scene.server.requests == ["POST ?0", "PATCH 0 ?1 1000", "PATCH 300 ?1 700", "HEAD"])
        scene.expectArrived()
    }

    @Test(
        "409: the offset is asked, and the upload continues there",
        arguments: [ResumableServer.Style.draft, .tusd, .terse])
    func conflict(_ style: ResumableServer.Style) async throws {
        let scene = try ResumableScene(chunk: 400) {
            $0.style = style
            $0.versions = ["6", "9"]
        }
        scene.server.plan("PATCH", .lostAnswer)
        // A HEAD from a cache. In the terse style the answer to the creation was looked into.
        let cached = ResumableServer.Fault.answer(204, [("Upload-Offset", "0"), ("Upload-Complete", "?0")])
        if style == .terse { scene.server.plan("HEAD", .none, cached) } else { scene.server.plan("HEAD", cached) }
        _ = try await scene.journey.arrive()
        let requests = scene.server.requests.drop { !$0.hasPrefix("PATCH") }
        #expect(requests.prefix(5) == ["PATCH 0 ?0 400", "HEAD", "PATCH 0 ?0 400", "HEAD", "PATCH 400 ?0 400"])
        scene.expectArrived()
    }

    @Test("a conflict over the last bytes is no refusal of the file")
    func conflictAtEnd() async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .cut(500))
        scene.server.plan("HEAD", .answer(204, [("Upload-Offset", "0"), ("Upload-Complete", "?0")]))
        let (object, _) = try await scene.journey.arrive()
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        scene.expectArrived()
    }

    @Test("413: the next request carries half as much, and a limit that OPTIONS names is learned")
    func tooMuch() async throws {
        let scene = try ResumableScene(size: 2 << 20) { $0.isAnnounced = false }
        scene.server.plan("PATCH", .answer(413), .answer(413))
        _ = try await scene.journey.attempt()
        #expect(scene.server.requests.contains("PATCH 0 ?0 524288"))
        scene.expectArrived()

        let limited = try ResumableScene(size: 2 << 20) { $0.namesLimits = false }
        _ = await limited.journey.destination.check()
        limited.server.change { ($0.limits, $0.maxAppend) = ("max-append-size=300000", 300_000) }
        _ = try await limited.journey.attempt()
        #expect(limited.server.finished == [limited.journey.content])
        // One request that was refused, and seven within the limit.
        #expect(limited.server.requests.filter { $0.hasPrefix("PATCH") }.count == 8)
    }

    @Test("redirects to the same origin are followed, and the upload's new address is kept")
    func redirects() async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .answer(308, [("Location", "/u/1")]))
        scene.server.plan("POST", .answer(307, [("Location", "/files?again")]))
        _ = try await scene.journey.attempt()
        #expect(scene.server.requests == ["POST ?0", "POST ?0", "PATCH 0 ?1 1000", "HEAD", "PATCH 0 ?1 1000", "HEAD"])
        scene.expectArrived()
        let away = try ResumableScene()
        away.server.plan("PATCH", .answer(308, [("Location", "http://elsewhere.test/u/1")]))
        let error = try await away.journey.failedAttempt()
        #expect(error.remedy == .misconfigured && error.failure.message.contains("elsewhere.test"))
    }

    @Test("cancelling removes an unfinished upload, and never a finished file")
    func discards() async throws {
        let scene = try ResumableScene()
        scene.server.plan("PATCH", .cut(500))
        _ = try await scene.journey.failedAttempt()
        let checkpoint = try #require(scene.journey.ledger.last)
        for _ in 0..<2 { #expect(try await scene.journey.destination.discard(checkpoint)) }
        #expect(scene.server.removed == 1 && scene.server.uploads.isEmpty)
        var finished = checkpoint
        finished.isFinished = true
        scene.server.forgetRequests()
        #expect(try await scene.journey.destination.discard(finished) == false)
        #expect(scene.server.requests.isEmpty)
        scene.server.plan("DELETE", .answer(405))
        #expect(try await scene.journey.destination.discard(checkpoint) == false)
    }

    @Test("the check says what the server announces")
    func checks() async throws {
        let scene = try ResumableScene { $0.limits = "max-size=5000, max-append-size=400, max-age=60" }
        let found = await scene.journey.destination.check()
        #expect(found.verdict == .ok)
        #expect(
            found.detail
                == "resumable uploads; its version shows with the first upload (interop 9, then interop 6); at most 5000 "
                + "bytes a file; at most 400 bytes a request; an unfinished upload is kept for 60 s", "\(found.detail)")
        _ = try await scene.journey.attempt()
        #expect(await scene.journey.destination.check().detail.contains("interop 9, as its answers show"))
        let silent = try ResumableScene { $0.isAnnounced = false }
        let warning = await silent.journey.destination.check()
        #expect(warning.verdict == .warning && warning.detail.contains("did not announce resumable uploads"))
        let tus = try FakeServer { $0.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")]) }
        let other = try UploadScenario(tus.url, type: "resumable-http")
        #expect(await other.destination.check().detail.contains("set `type: tus`"))
    }

    @Test("the server of another address for one upload is the same, and headers of the protocol are refused")
    func addresses() async throws {
        let scene = try ResumableScene()
        var journey = scene.journey
        journey.order.url = .creation(scene.server.url + "?album=1")
        _ = try await journey.attempt()
        scene.expectArrived()
        journey.order.url = .creation("http://127.0.0.1:1/files")
        await #expect(throws: UploadError.self) { try await journey.attempt() }
        #expect(journey.destination.objection(toHeader: "Upload-Complete") != nil)
        #expect(journey.destination.objection(toHeader: "X-Album") == nil)
    }
}
