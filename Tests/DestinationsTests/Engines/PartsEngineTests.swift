import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The engine with a test remote: numbered parts with tags, a list of them, an explicit completion.
@Suite("Engine for parts", .timeLimit(.minutes(Patience.minutes(2))))
struct PartsEngineTests {
    private static let part = 100

    private func send(
        _ staged: StagedUpload, to remote: PartsRemote, _ recorder: RecordingReporter = RecordingReporter(),
        parallel: Int = 1,
        gone: GonePolicy = .reupload
    ) async throws -> RemoteObject {
        var order = staged.order
        order.checkpoint = recorder.last
        recorder.beginAttempt()
        return try await PartsEngine(dialect: remote, parallel: parallel, gone: gone).upload(order, recorder)
    }

    @Test(
        "killed after any note, with one part at a time or many, the object is there once and complete",
        arguments: [1, 4])
    func killedAnywhere(_ parallel: Int) async throws {
        for note in 1... {
            let remote = PartsRemote()
            let staged = try StagedUpload(5 * Self.part + 1)
            let recorder = RecordingReporter()
            recorder.stop { $0.taken == note }
            let first = Task { try await send(staged, to: remote, recorder, parallel: parallel) }
            var wasStopped = false
            do { _ = try await first.value } catch is CancellationError { wasStopped = true }
            recorder.stop { _ in false }
            _ = try await send(staged, to: remote, recorder, parallel: parallel)
            #expect(remote.objects == [staged.content], "stopped at note \(note)")
            #expect(remote.open.count <= 1, "stopped at note \(note): \(remote.open)")
            if !wasStopped {
                #expect(note > 8)
                break
            }
        }
    }

    @Test("a lost answer to any request is resolved, without a duplicate")
    func lostAnswers() async throws {
        for number in 1...9 {
            let remote = PartsRemote()
            remote.loses(number)
            let staged = try StagedUpload(5 * Self.part)
            let recorder = RecordingReporter()
            var object: RemoteObject?
            for _ in 0..<4 where object == nil {
                do { object = try await send(staged, to: remote, recorder) } catch is UploadError {}
            }
            #expect(object != nil && remote.objects == [staged.content], "request \(number)")
        }
    }

    @Test(
        "whole parts are sent as far as a quota permits, and with too little no request is made",
        arguments: [1, 4])
    func quota(_ parallel: Int) async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(7 * Self.part)
        let recorder = RecordingReporter()
        func isShort(_ left: Int64) async -> Bool {
            remote.leaves(left)
            let error = await #expect(throws: UploadError.self) {
                try await send(staged, to: remote, recorder, parallel: parallel)
            }
            return error?.failure.code == .shortOfQuota && error?.remedy == .lackQuota(after: .seconds(9))
        }
        #expect(await isShort(99))
        #expect(remote.begun == 0)
        #expect(await isShort(350))
        #expect(remote.sent.count == 3 && remote.maxReserved <= 350)
        let asked = remote.requests
        #expect(await isShort(99))
        #expect(remote.requests == asked)
        #expect(await isShort(299))
        #expect(remote.sent.count == 5)
        remote.leaves(nil)
        _ = try await send(staged, to: remote, recorder, parallel: parallel)
        #expect(remote.objects == [staged.content])
        #expect(remote.sent.count == 7)
    }

    @Test("a possibly complete object is looked for, whatever quota is left")
    func quotaAtTheEnd() async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(2 * Self.part)
        let recorder = RecordingReporter()
        // The answer to the completion.
        remote.loses(4)
        await #expect(throws: UploadError.self) { try await send(staged, to: remote, recorder) }
        remote.leaves(0)
        _ = try await send(staged, to: remote, recorder)
        #expect(remote.objects == [staged.content] && remote.sent.count == 2)
    }

    @Test(
        "an upload waiting for a name, or without an answer about it, has started nothing, and no creation is reported")
    func unsettled() async throws {
        let remote = PartsRemote()
        remote.leavesUnsettled(2)
        let staged = try StagedUpload(Self.part)
        let recorder = RecordingReporter()
        for _ in 0..<2 {
            await #expect(throws: UploadError.self) { _ = try await send(staged, to: remote, recorder) }
            #expect(recorder.last == nil)
        }
        let object = try await send(staged, to: remote, recorder)
        #expect(object.warnings.isEmpty, "\(object.warnings)")
        #expect(remote.begun == 1 && remote.objects == [staged.content])
    }

    @Test("the remote list counts: lost parts are sent again, existing ones are not, another tag is another part")
    func listIsTruth() async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(6 * Self.part)
        let recorder = RecordingReporter()
        recorder.stop { $0.accepted >= 4 * Int64(Self.part) }
        let first = Task { try await send(staged, to: remote, recorder) }
        await #expect(throws: CancellationError.self) { try await first.value }
        recorder.stop { _ in false }
        remote.change { parts in
            parts[0] = nil
            parts[1]?.tag = "somebody else's"
            parts[4] = PartsRemote.Stored(bytes: Array(staged.content[400..<500]), tag: "t4")
        }
        let before = remote.sent.count
        _ = try await send(staged, to: remote, recorder)
        #expect(remote.sent.dropFirst(before).sorted() == [0, 1, 5])
        #expect(remote.objects == [staged.content])
    }

    @Test("a completion with missing parts gets them, a limited number of times")
    func missingParts() async throws {
        let remote = PartsRemote()
        remote.dropsBeforeCompletion(2)
        let staged = try StagedUpload(4 * Self.part)
        _ = try await send(staged, to: remote)
        #expect(remote.objects == [staged.content] && remote.sent == [0, 1, 2, 3, 2])
    }

    @Test("tags are returned unchanged at completion, after a restart too")
    func tags() async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(3 * Self.part)
        let recorder = RecordingReporter()
        remote.loses(4)
        await #expect(throws: UploadError.self) { try await send(staged, to: remote, recorder) }
        _ = try await send(staged, to: remote, recorder)
        #expect(remote.completedWith == ["t0", "t1", "t2"])
    }

    @Test("a lost upload starts again, at most twice in an attempt, and a complete object is found")
    func gone() async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(4 * Self.part)
        let recorder = RecordingReporter()
        recorder.stop { $0.accepted >= 2 * Int64(Self.part) }
        let first = Task { try await send(staged, to: remote, recorder) }
        await #expect(throws: CancellationError.self) { try await first.value }
        recorder.stop { _ in false }
        remote.forget()
        _ = try await send(staged, to: remote, recorder)
        #expect(remote.objects == [staged.content] && remote.begun == 2)
        // The answer to the completion is lost, and the upload no longer exists: the object itself is found.
        let other = PartsRemote()
        other.loses(6)
        let second = RecordingReporter()
        await #expect(throws: UploadError.self) { try await send(staged, to: other, second) }
        #expect(try await send(staged, to: other, second).verifiedBy == "found")
        #expect(other.objects == [staged.content] && other.begun == 1)
    }

    @Test("another content, another server, or a damaged note starts again, and the old parts are discarded")
    func renewed() async throws {
        let remote = PartsRemote()
        let staged = try StagedUpload(4 * Self.part)
        let recorder = RecordingReporter()
        recorder.stop { $0.accepted >= 2 * Int64(Self.part) }
        let first = Task { try await send(staged, to: remote, recorder) }
        await #expect(throws: CancellationError.self) { try await first.value }
        recorder.stop { _ in false }
        let other = try StagedUpload(4 * Self.part, seed: 5)
        _ = try await send(other, to: remote, recorder)
        #expect(remote.objects == [other.content])
        let engine = PartsEngine(dialect: remote, parallel: 1, gone: .hold)
        #expect(recorder.left.count == 1)
        for old in recorder.left { #expect(try await engine.discard(PartsCheckpoint(old))) }
        #expect(remote.open.isEmpty, "parts begun with the other content are removed")
    }

    @Test("progress is acknowledged bytes and bytes in flight, and never more than the file")
    func progress() async throws {
        let remote = PartsRemote()
        let recorder = RecordingReporter()
        let staged = try StagedUpload(9 * Self.part)
        _ = try await send(staged, to: remote, recorder, parallel: 3)
        #expect(recorder.sent.max() == Int64(staged.content.count))
        #expect(recorder.accepted == Int64(staged.content.count))
    }
}

/// A remote in memory. Its requests are counted in order: begin, parts, completion.
final class PartsRemote: PartsDialect {
    struct Stored: Sendable {
        var bytes: [UInt8]
        var tag: String
    }

    private struct State {
        var open: [String: [Int: Stored]] = [:]
        var objects: [[UInt8]] = []
        var sent: [Int] = []
        var begun = 0
        var requests = 0
        var lost: Int?
        var drops: Int?
        var tags: [String] = []
        var unsettled = 0
        var gate: Gate?
        var left: Int64?
        var reserved: Int64 = 0
        var maxReserved: Int64 = 0
    }

    private let state = Mutex(State())

    let opensByRequest = true
    let completesByRequest = true
    let repeatsSafely = true
    let lastGoesAlone = false
    let mayRename = false
    let comparesContent = false
    let canAbort = true
    let inquiry = PartsInquiry.list

    /// Sets the rest of a quota; the largest reservation is recorded.
    func leaves(_ bytes: Int64?) { state.withLock { $0.left = bytes } }
    var maxReserved: Int64 { state.withLock { $0.maxReserved } }

    func charging(upload id: String) -> PartsRemote { self }

    func reserve(for count: Int64) -> Shortage? {
        state.withLock { state in
            if let left = state.left, state.reserved + count > left {
                return Shortage(text: "short", after: .seconds(9))
            }
            state.reserved += count
            state.maxReserved = max(state.maxReserved, state.reserved)
            return nil
        }
    }

    func returnReservation(for count: Int64, sent: Int64) {
        state.withLock { state in
            state.reserved -= count
            if let left = state.left { state.left = left - sent }
        }
    }

    var objects: [[UInt8]] { state.withLock { $0.objects } }
    var open: [String] { state.withLock { $0.open.keys.sorted() } }
    var sent: [Int] { state.withLock { $0.sent } }
    var begun: Int { state.withLock { $0.begun } }
    var requests: Int { state.withLock { $0.requests } }
    var completedWith: [String] { state.withLock { $0.tags } }

    /// From now on each part waits there before it arrives.
    func holds(at gate: Gate) { state.withLock { $0.gate = gate } }
    func loses(_ request: Int) { state.withLock { $0.lost = request } }
    func leavesUnsettled(_ times: Int) { state.withLock { $0.unsettled = times } }
    func dropsBeforeCompletion(_ part: Int) { state.withLock { $0.drops = part } }
    func forget() { state.withLock { $0.open = [:] } }
    func change(_ body: (inout [Int: Stored]) -> Void) {
        state.withLock { state in for id in state.open.keys { body(&state.open[id, default: [:]]) } }
    }

    /// - Returns: Whether the answer to this request is lost.
    private func isLost(_ state: inout State) -> Bool {
        state.requests += 1
        return state.requests == state.lost
    }

    private var noAnswer: UploadError {
        UploadError(
            failure(.transient, .connectionLost, "cut", retryable: true), remedy: .holdDestination(after: nil))
    }
    private var unknown: UploadError {
        UploadError(failure(.transient, .http(404), "unknown", retryable: true), remedy: .retry(after: nil))
    }

    func plan(_ order: UploadOrder) throws -> PartPlan {
        guard let plan = PartPlan(size: order.file.size, partSize: 100) else { throw unknown }
        return plan
    }

    func chooseName(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint, restarts: Int64
    ) async throws -> RemoteObject? {
        let isLost = state.withLock { state in
            state.unsettled -= 1
            return state.unsettled >= 0
        }
        if isLost { throw noAnswer }
        return nil
    }

    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint) async throws {
        let (id, isLost) = state.withLock { state -> (String, Bool) in
            state.begun += 1
            let id = "upload \(state.begun)"
            // A creation that did not arrive is not part of this test.
            let isLost = self.isLost(&state)
            if !isLost { state.open[id] = [:] }
            return (id, isLost)
        }
        if isLost { throw noAnswer }
        checkpoint.form.id = id
    }

    func isOurs(_ checkpoint: PartsCheckpoint) -> Bool { true }

    func held(among indices: [Int], _ piece: PartsContext) async throws -> RemoteParts {
        guard let parts = state.withLock({ $0.open[piece.checkpoint.form.id ?? ""] }) else { return .gone(unknown) }
        return .parts(
            parts.map { AcknowledgedPart(index: $0.key, size: Int64($0.value.bytes.count), tag: $0.value.tag) })
    }

    func send(
        _ part: PartPlan.Part, _ piece: PartsContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSendResult {
        if Task.isCancelled { return PartSendResult(.failed(CancellationError()), bytesSent: 0) }
        await state.withLock { $0.gate }?.pass()
        do {
            let all = try Files.read(piece.order.file.path, limit: 1 << 20)
            let bytes = Array(all[Int(part.offset)..<Int(part.end)])
            sent(part.length / 2)
            sent(part.length)
            let id = piece.checkpoint.form.id ?? ""
            let tag = "t\(part.index)"
            let answer = state.withLock { state -> PartSendResult.Answer in
                guard state.open[id] != nil else { return .gone(unknown) }
                state.sent.append(part.index)
                state.open[id]?[part.index] = Stored(bytes: bytes, tag: tag)
                if isLost(&state) { return .failed(noAnswer) }
                return .accepted(
                    AcknowledgedPart(index: part.index, size: part.length, tag: tag), finished: nil)
            }
            return PartSendResult(answer, bytesSent: part.length)
        } catch { return PartSendResult(.failed(error), bytesSent: 0) }
    }

    func complete(_ parts: [AcknowledgedPart], _ piece: PartsContext) async -> PartsCompletion {
        state.withLock { state in
            let id = piece.checkpoint.form.id ?? ""
            if let dropped = state.drops {
                state.drops = nil
                state.open[id]?[dropped] = nil
            }
            guard let stored = state.open[id] else { return .gone(unknown) }
            let missing = parts.filter { stored[$0.index]?.tag != $0.tag }.map(\.index)
            if !missing.isEmpty { return .missing(missing, isListed: true, unknown) }
            state.objects.append(stored.sorted { $0.key < $1.key }.flatMap(\.value.bytes))
            state.tags = parts.map(\.tag)
            state.open[id] = nil
            if isLost(&state) { return .failed(noAnswer) }
            return .done(RemoteObject(id: id, url: nil, verifiedBy: "tags"))
        }
    }

    func found(_ piece: PartsContext) async throws -> RemoteObject? {
        let all = try Files.read(piece.order.file.path, limit: 1 << 20)
        return objects.contains(all) ? RemoteObject(id: nil, url: nil, verifiedBy: "found") : nil
    }

    func abort(_ checkpoint: PartsCheckpoint) async throws -> Bool {
        state.withLock { _ = $0.open.removeValue(forKey: checkpoint.form.id ?? "") }
        return true
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        Failure(kind, code: code, message: message, at: WallTime(milliseconds: 0), retryable: retryable)
    }
}
