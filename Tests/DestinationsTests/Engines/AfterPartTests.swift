import Core
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// Holds parts until the test lets them arrive.
final class Gate: Sendable {
    private struct State {
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isOpen = false
    }
    private let state = Mutex(State())

    var waiting: Int { state.withLock { $0.waiting.count } }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Releases the part that has waited for longest.
    func letOneGo() { state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }?.resume() }

    func open() {
        let all = state.withLock { state in
            defer { state.waiting = [] }
            state.isOpen = true
            return state.waiting
        }
        for one in all { one.resume() }
    }
}

@Suite("Uploads that end after their running parts", .timeLimit(.minutes(Patience.minutes(2))))
struct AfterPartTests {
    private static let part = 100

    /// Three parts of six at the gate.
    private func begun(
        _ remote: PartsRemote, _ gate: Gate, _ staged: StagedUpload, _ recorder: RecordingReporter
    ) async throws -> Task<RemoteObject, any Error> {
        remote.holds(at: gate)
        let sending = Task { try await send(staged, to: remote, recorder) }
        try await eventually("three parts are in flight") { gate.waiting == 3 }
        return sending
    }

    private func send(_ staged: StagedUpload, to remote: PartsRemote, _ recorder: RecordingReporter) async throws
        -> RemoteObject
    {
        var order = staged.order
        order.checkpoint = recorder.last
        recorder.beginAttempt()
        return try await PartsEngine(dialect: remote, parallel: 3, gone: .reupload).upload(order, recorder)
    }

    @Test("three running parts are completed, and the fourth does not start")
    func ends() async throws {
        let (remote, gate, recorder) = (PartsRemote(), Gate(), RecordingReporter())
        let staged = try StagedUpload(6 * Self.part)
        let sending = try await begun(remote, gate, staged, recorder)
        recorder.pause { _ in true }
        gate.open()
        await #expect(throws: CancellationError.self) { try await sending.value }
        #expect(remote.sent.sorted() == [0, 1, 2] && remote.objects.isEmpty)
        #expect(recorder.accepted == 3 * Int64(Self.part))
        recorder.pause { _ in false }
        _ = try await send(staged, to: remote, recorder)
        #expect(remote.sent.sorted() == Array(0..<6) && remote.objects == [staged.content] && remote.begun == 1)
    }

    @Test("withdrawn in time, the upload continues as if not paused")
    func takenBack() async throws {
        let (remote, gate, recorder) = (PartsRemote(), Gate(), RecordingReporter())
        let staged = try StagedUpload(6 * Self.part)
        let sending = try await begun(remote, gate, staged, recorder)
        let asked = Mutex(0)
        recorder.pause { pages in
            asked.withLock { $0 += pages.accepted > 0 ? 1 : 0 }
            return true
        }
        gate.letOneGo()
        try await eventually("the pause was checked after the first part") { asked.withLock { $0 } > 0 }
        #expect(gate.waiting == 2)
        recorder.pause { _ in false }
        gate.open()
        _ = try await sending.value
        #expect(remote.sent.sorted() == Array(0..<6) && remote.objects == [staged.content] && remote.begun == 1)
    }

    @Test("with every part running, the upload completes")
    func completes() async throws {
        let (remote, gate, recorder) = (PartsRemote(), Gate(), RecordingReporter())
        let staged = try StagedUpload(3 * Self.part)
        let sending = try await begun(remote, gate, staged, recorder)
        recorder.pause { _ in true }
        gate.open()
        _ = try await sending.value
        #expect(remote.objects == [staged.content])
    }

    @Test("a part that fails meanwhile is a failure, not a pause")
    func fails() async throws {
        let (remote, gate, recorder) = (PartsRemote(), Gate(), RecordingReporter())
        let staged = try StagedUpload(6 * Self.part)
        // The opening is the first request.
        remote.loses(3)
        let sending = try await begun(remote, gate, staged, recorder)
        recorder.pause { _ in true }
        gate.open()
        await #expect(throws: UploadError.self) { try await sending.value }
        #expect(recorder.accepted == 2 * Int64(Self.part))
    }

    @Test("with offsets, the running request ends, and the next does not start")
    func offset() async throws {
        let script = ScriptedTusServer()
        let (server, journey) = try Self.journey(script) { $0.pauses.withLock { $0 = true } }
        await #expect(throws: CancellationError.self) { try await journey.attempt() }
        #expect(script.held == Array(journey.content.prefix(400)))
        #expect(journey.ledger.book.withLock { $0.accepted.last } == 400)
        #expect(verbs(server).count { $0 == "PATCH" } == 1)
    }

    @Test("with offsets, an upload in one request completes")
    func single() async throws {
        let script = ScriptedTusServer()
        let (server, journey) = try Self.journey(script, chunk: nil) { $0.pauses.withLock { $0 = true } }
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server).count { $0 == "PATCH" } == 1)
    }

    /// - Parameter body: Called when the server has the first bytes.
    private static func journey(
        _ script: ScriptedTusServer, chunk: Int64? = 400, _ body: @escaping @Sendable (CountingReporter) -> Void
    ) throws -> (FakeServer, UploadScenario) {
        let ledger = CountingReporter()
        let server = try FakeServer { exchange in
            if exchange.method == "PATCH" { body(ledger) }
            script.serve(exchange)
        }
        return (server, try UploadScenario(server.url + "/files", size: 1000, chunk: chunk, ledger: ledger))
    }
}
