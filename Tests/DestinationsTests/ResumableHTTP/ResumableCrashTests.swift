import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// The process ends at any moment, and the next one continues from what was recorded.
@Suite("Resumable uploads over crashes", .timeLimit(.minutes(Patience.minutes(2))))
struct ResumableCrashTests {
    @Test(
        "from each recorded checkpoint, with each server: the file is there once, and no byte is sent below the offset")
    func everyCheckpoint() async throws {
        for style in [ResumableServer.Style.draft, .tusd, .terse] {
            let first = try ResumableScene(chunk: 400) { $0.style = style }
            _ = try await first.journey.attempt()
            let count = first.journey.ledger.book.withLock { $0.checkpoints.count }
            #expect(count >= 5)
            for number in 0..<count {
                try await dies(after: number, style)
            }
        }
    }

    private struct Killed: Error {}

    /// The process is killed when it has recorded `number` checkpoints, and before it does anything else.
    private func dies(after number: Int, _ style: ResumableServer.Style) async throws {
        let left = Mutex(number)
        let ledger = CountingReporter { _ in
            try left.withLock { left in
                if left == 0 { throw Killed() }
                left -= 1
            }
        }
        let scene = try ResumableScene(chunk: 400, ledger: ledger) { $0.style = style }
        do { _ = try await scene.journey.attempt() } catch is Killed {}
        let before = scene.server.uploads.map(\.held.count).max() ?? 0
        scene.server.forgetRequests()
        let second = try ResumableScene.journey(scene.server, chunk: 400, checkpoint: scene.journey.ledger.last)
        _ = try await second.attempt()
        let comment: Comment = "\(style) after \(number): \(scene.server.requests)"
        #expect(scene.server.finished == [scene.journey.content], comment)
        #expect(scene.server.violations.isEmpty, comment)
        // Only an upload whose address was not recorded is created again.
        if scene.journey.ledger.last?["url"] != nil {
            #expect(!scene.server.requests.contains("POST ?0"), comment)
            let offsets = scene.server.requests.compactMap { request -> Int? in
                let words = request.split(separator: " ")
                return words[0] == "PATCH" ? Int(words[1]) : nil
            }
            #expect(offsets.allSatisfy { $0 >= before }, comment)
        }
    }

    @Test("cut or unanswered at every request, in every style: each file is there once", arguments: [1, 2, 3])
    func everyFault(_ seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        for style in [ResumableServer.Style.draft, .tusd, .terse] {
            for _ in 0..<8 {
                let scene = try ResumableScene(size: 3000, chunk: 700) {
                    $0.style = style
                    $0.interimEvery = Bool.random(using: &dice) ? 500 : nil
                }
                func faults() -> ResumableServer.Fault {
                    [
                        .none, .none, .drop, .lostAnswer, .cut(Int.random(in: 0...700, using: &dice)), .answer(503),
                        .answer(500), .answer(423), .partial(Int.random(in: 1...600, using: &dice)),
                    ].randomElement(using: &dice) ?? .none
                }
                scene.server.plan("PATCH", faults(), faults(), faults(), faults(), faults())
                scene.server.plan("HEAD", .none, .drop, .answer(503), .none)
                let (object, _) = try await scene.journey.arrive(within: 40)
                scene.expectArrived("\(style), \(scene.server.requests)")
                #expect(object.verifiedBy.hasPrefix("offset"), "\(object)")
            }
        }
    }
}
