import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// A cancel at every point of an upload: either nothing is left at the server, or a warning says that remains are
/// possible.
@Suite("Cancelled chunked forms", .timeLimit(.minutes(Patience.minutes(2))))
struct FormAbortTests {
    private static let block = Int(FormScene.block)

    enum Point: String, CaseIterable {
        case refusedOpening, lostOpening, opened, betweenBlocks, blockUnderWay, blocksSideBySide, beforeFinish
    }

    /// An upload that is stopped at this point.
    private func stopped(_ point: Point, _ recorder: RecordingReporter) async throws -> FormScene {
        let isJoined = point == .beforeFinish
        var values = FormScene.abort
        if isJoined { values.merge(FormScene.finish) { $1 } }
        if point == .blocksSideBySide { values["parallel_blocks"] = .whole(3) }
        // `{token}` is the name that the server gave.
        if !isJoined { values["abort.fields"] = .map(["id": .literal("{token}")]) }
        let scene = try FormScene(isJoined ? "webuploader" : "breakpoint", values) { $0.wantsFinish = isJoined }
        let staged = try StagedUpload(4 * Self.block)
        switch point {
        case .refusedOpening:
            scene.server.set { $0.refusals = (413, 1, nil) }
            _ = try await staged.failure(to: scene, recorder)
        case .lostOpening:
            scene.server.set { $0.lostOpenings = 1 }
            _ = try await staged.failure(to: scene, recorder)
        case .opened:
            #expect(try await staged.sendStopped(to: scene, recorder) { $0.checkpoints.last?["begun"] != nil })
        case .betweenBlocks: try await staged.sendStopped(to: scene, recorder, accepting: 2 * Self.block)
        case .blockUnderWay, .blocksSideBySide:
            scene.server.set { $0.readPause = 200_000 }
            let sending = Task { try await staged.send(to: scene, recorder) }
            try await eventually("a block is in flight") { !recorder.sent.isEmpty }
            sending.cancel()
            await #expect(throws: CancellationError.self) { try await sending.value }
            scene.server.set { $0.readPause = 0 }
        case .beforeFinish: try await staged.sendStopped(to: scene, recorder, accepting: 4 * Self.block)
        }
        return scene
    }

    @Test("a cancel leaves no remains, or reports possible ones", arguments: Point.allCases)
    func everywhere(_ point: Point) async throws {
        let recorder = RecordingReporter()
        let scene = try await stopped(point, recorder)
        let isRemoved = try await scene.destination.discard(try #require(recorder.last))
        #expect(isRemoved == (point != .lostOpening))
        #expect(scene.server.unfinished == (isRemoved ? 0 : 1), "\(scene.server.ids)")
        #expect(try scene.objects.isEmpty)
        // A second removal finds nothing, which is the desired result.
        #expect(try await scene.destination.discard(try #require(recorder.last)) == isRemoved)
        try await scene.close()
    }

    @Test(
        "a cancel is retried after a server error or a login page", arguments: Point.allCases,
        [500, 503, 0, 429, 401, 200])
    func failsAtFirst(_ point: Point, _ status: Int) async throws {
        // An upload that was never begun is not removed.
        if point == .refusedOpening || point == .lostOpening { return }
        let recorder = RecordingReporter()
        let scene = try await stopped(point, recorder)
        let checkpoint = try #require(recorder.last)
        scene.server.set { $0.aborts = [status] }
        await #expect(throws: UploadError.self) { try await scene.destination.discard(checkpoint) }
        #expect(scene.server.unfinished == 1)
        #expect(try await scene.destination.discard(checkpoint))
        #expect(scene.server.unfinished == 0)
        try await scene.close()
    }

    @Test("a cancel uses the name that the server gave meanwhile", arguments: [1, 4])
    func renamed(_ parallel: Int) async throws {
        let scene = try FormScene(
            "fineuploader", FormScene.abort.merging(["parallel_blocks": .whole(parallel)]) { $1 })
        scene.server.set { $0.newID = "the-servers-own" }
        let recorder = RecordingReporter()
        try await StagedUpload(9 * Self.block).sendStopped(to: scene, recorder, accepting: 2 * Self.block)
        // Otherwise the block in flight would be stored after the removal.
        try await eventually("no block is in flight") { scene.server.underWay == 0 }
        #expect(scene.server.ids == ["the-servers-own"])
        #expect(try await scene.destination.discard(try #require(recorder.last)))
        #expect(scene.server.unfinished == 0)
        try await scene.close()
    }

    @Test(
        "a server without a cancel request is reported, even if a client treats 500 as final",
        arguments: [400, 405, 501])
    func refused(_ status: Int) async throws {
        for preset in ["resumable", "dropzone"] {
            let scene = try FormScene(preset, FormScene.abort)
            let recorder = RecordingReporter()
            try await StagedUpload(4 * Self.block).sendStopped(to: scene, recorder, accepting: Self.block)
            let checkpoint = try #require(recorder.last)
            scene.server.set { $0.aborts = [500, status, 404] }
            await #expect(throws: UploadError.self) { try await scene.destination.discard(checkpoint) }
            #expect(try await !scene.destination.discard(checkpoint))
            #expect(try await scene.destination.discard(checkpoint))
            try await scene.close()
        }
    }
}
