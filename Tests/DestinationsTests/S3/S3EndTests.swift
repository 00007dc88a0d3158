import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// A bucket's answers at the end of an upload, and a portal's in its place.
@Suite("s3: end and start of an upload", .timeLimit(.minutes(Patience.minutes(3))))
struct S3EndTests {
    private static let sizes = [500, S3Scene.size]

    /// Answers every HEAD with these headers, and everything else with a page.
    private func portal(_ headers: String) throws -> FakeServer {
        try FakeServer { exchange in
            _ = exchange.body()
            exchange.answer(
                Array("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\(headers)\r\n".utf8))
            if exchange.method != "HEAD" { exchange.raw("<html></html>".prefix(12).description) }
        }
    }

    @Test("a portal that answers 200 to every HEAD holds the destination at the first one")
    func portalWithoutTags() async throws {
        let server = try portal("")
        defer { server.stop() }
        let scene = try S3Scene(["endpoint": .text(server.url)])
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        for _ in 0..<3 {
            let error = try await staged.failure(to: scene, recorder)
            #expect(error.remedy == .misconfigured && error.failure.code == .webPage, "\(error)")
        }
        #expect(server.seen.count == 3)
    }

    @Test("a portal that gives each page an ETag holds the destination after a few names")
    func portalWithTags() async throws {
        let server = try portal("ETag: \"5f3a\"\r\n")
        defer { server.stop() }
        let scene = try S3Scene(["endpoint": .text(server.url)])
        let error = try await StagedUpload(S3Scene.size).failure(to: scene)
        #expect(error.remedy == .misconfigured && error.failure.code == .allNamesTaken, "\(error)")
        #expect(error.failure.message.contains("reports an object for every name"))
        #expect(server.seen.count < 15, "\(server.seen.count) requests")
    }

    @Test("a free name after many is searched some at a time, and found")
    func manyNames() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { state in
            for number in 1...70 {
                let name = FilePath("clip.mp4").numbered(number)
                state.objects["front/\(name.display)"] = S3Emulator.Object(bytes: [1], headers: [:], etag: "\"x\"")
            }
        }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        for _ in 0..<2 {
            let before = scene.emulator.requests.count
            let error = try await staged.failure(to: scene, recorder)
            guard case .pending = error.remedy else { throw error }
            #expect(error.failure.code == .namesTaken && error.failure.retryable)
            #expect(scene.emulator.requests.count - before <= 32)
        }
        #expect(try await staged.send(to: scene, recorder).id == "front/clip (71).mp4")
    }

    @Test("a cancel at the end reports that nothing was removed if the object is complete", arguments: sizes)
    func cancelled(_ size: Int) async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        scene.emulator.script(size == 500 ? .put : .complete, .loseReply)
        _ = try await staged.failure(to: scene, recorder)
        let checkpoint = try #require(recorder.last)
        #expect(try await scene.destination.discard(checkpoint) == false)
        #expect(scene.holds(staged))
        // If the key has no permission for the query, nothing is reported.
        scene.emulator.change { $0.judge = { $0.method == "HEAD" ? (403, "AccessDenied", "no") : nil } }
        let error = await #expect(throws: UploadError.self) { try await scene.destination.discard(checkpoint) }
        #expect(error?.failure.code == .removalUnknown && error?.isConclusive == true)
        // Another file has the name, or nothing is there.
        scene.emulator.change { ($0.objects, $0.judge) = ([:], nil) }
        #expect(try await scene.destination.discard(checkpoint) == true)
        try await StagedUpload(size, seed: 7).bring(to: scene)
        #expect(try await scene.destination.discard(checkpoint) == true)
    }

    @Test(
        "removal of an unfinished upload that no longer exists is done",
        arguments: [404, 410, 400])
    func abortedBefore(_ status: Int) async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        let checkpoint = try #require(recorder.last)
        scene.emulator.script(.abort, .error(status, "NoSuchUpload"))
        #expect(try await scene.destination.discard(checkpoint))
        scene.emulator.script(.abort, .error(400, "InvalidRequest"))
        await #expect(throws: UploadError.self) { try await scene.destination.discard(checkpoint) }
    }

    @Test("an upload unknown at its end starts again without a warning if no object is there")
    func unknownUpload() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        scene.emulator.change {
            $0.faults[.complete] = Array(repeating: .error(404, "NoSuchUpload"), count: 5)
        }
        var waits = 0
        for _ in 0..<2 {
            let error = try await staged.failure(to: scene, recorder)
            #expect(error.remedy != .failUpload, "\(error)")
            if case .pending = error.remedy { waits += 1 }
        }
        #expect(waits == 2)
        let object = try await scene.bring(staged, recorder)
        #expect(!object.warnings.contains { $0.contains("sent twice") }, "\(object.warnings)")
        #expect(scene.holds(staged))
    }

    @Test("if an answer to its end was lost before, the possible object is reported")
    func lostBefore() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        scene.emulator.script(.complete, .loseReply)
        _ = try await staged.failure(to: scene, recorder)
        // Another program removes it at once.
        scene.emulator.change { $0.objects = [:] }
        let object = try await scene.bring(staged, recorder)
        #expect(object.warnings.contains { $0.contains("sent twice") }, "\(object.warnings)")
    }
}

extension StagedUpload {
    fileprivate func bring(to end: any RemoteFixture) async throws { _ = try await send(to: end, RecordingReporter()) }
}
