import Core
import TestKit
import Testing

@testable import Store

/// What each event of an upload wakes, in each state where it has an effect.
@Suite("Events of uploads that wake")
struct UploadEventTests {
    struct Pair: Sendable, CustomTestStringConvertible {
        let state: UploadState
        let event: UploadEvent
        var testDescription: String { "\(event) when \(state)" }

        static let all = UploadState.allCases.flatMap { state in
            UploadEvent.allCases.filter { state.after($0) != nil }.map { Pair(state: state, event: $0) }
        }

        /// Without a default: a new event does not compile until it is known what it wakes.
        var changes: ChangeSet {
            switch event {
            case .staged, .retriedFromCopy: [.queued, .events]
            case .claimed, .yielded, .attemptFailed: [.events]
            // The source and the copy stay.
            case .refused: [.lists, .events]
            case .verified: [.due, .lists, .events]
            case .copyLost, .retriedFromSource: [.copies, .events]
            // The copy that was to be made is not needed any more.
            case .cancelled where state == .staging: [.copies, .due, .lists, .events]
            case .cancelled: [.due, .lists, .events]
            // The source and the copy that it has kept are left to the release.
            case .dismissed where state == .failed: [.due, .lists, .events]
            case .dismissed: [.lists, .events]
            }
        }
    }

    private static let failure = Failure(
        .local, code: .init(rawValue: "test"), message: "failed", at: WallTime(milliseconds: 0), retryable: false)
    private static let remote = RemoteObject(id: "x", url: nil, verifiedBy: "digest")

    @Test("each event wakes those who go on with the upload, and no other loop", arguments: Pair.all)
    func wakes(_ pair: Pair) async throws {
        let (scene, reported) = (try await Scene(), Reported())
        let store = scene.store
        await store.onChange { reported.add($0) }
        let one = try await bring(
            scene, to: pair.state, isLostByOther: pair.event == .copyLost && pair.state == .queued)
        #expect(try await state(one.id, store) == pair.state)
        _ = reported.take()
        let work = try await scene.mediaWork()
        try await apply(pair, one, scene)
        #expect(try await state(one.id, store) == pair.state.after(pair.event))
        #expect(reported.take() == pair.changes)
        // `RemovableMedia` counts again only after these.
        if try await scene.mediaWork() != work { #expect(!pair.changes.isDisjoint(with: .ofMediaWork)) }
    }

    private typealias One = (asset: Int64, id: String)

    private func state(_ id: String, _ store: Store) async throws -> UploadState? {
        try await store.read { try $0.uploads.find(id) }?.state
    }

    /// Makes an upload in a state.
    ///
    /// - Parameter isLostByOther: Whether its asset has another upload, which runs.
    private func bring(_ scene: Scene, to state: UploadState, isLostByOther: Bool) async throws -> One {
        let store = scene.store
        let arrival = Scene.arrival(Scene.file("a"), to: isLostByOther ? ["nas", "web"] : ["nas"])
        if state == .staging {
            guard
                case .recorded(let asset, let ids)? = try await store.write({ try $0.arrivals.record([arrival]) }).first
            else { throw Scene.Unexpected() }
            return (asset, ids[0])
        }
        let staged = try await scene.stage(arrival)
        var one = (asset: staged.asset, id: staged.uploads[0])
        switch state {
        case .staging: break
        case .queued:
            if isLostByOther {
                _ = try #require(try await store.claim("nas", passingOver: []))
                one.id = staged.uploads[1]
            }
        case .uploading: _ = try #require(try await store.claim("nas", passingOver: []))
        case .completed: try await end(one, .verified(Self.remote), store)
        case .failed: try await end(one, .refused(Self.failure), store)
        case .cancelled: _ = try await store.write { [one] in try $0.transitions.cancel([one.id]) }
        case .removed:
            try await end(one, .refused(Self.failure), store)
            _ = try await store.write { [one] in try $0.transitions.dismiss([one.id], .dismissed) }
        }
        return one
    }

    private func end(_ one: One, _ outcome: AttemptOutcome, _ store: Store) async throws {
        _ = try #require(try await store.claim("nas", passingOver: []))
        try await store.write { try $0.attempts.finish(one.id, outcome) }
    }

    private func apply(_ pair: Pair, _ one: One, _ scene: Scene) async throws {
        let store = scene.store
        func finish(_ outcome: AttemptOutcome) async throws {
            try await store.write { try $0.attempts.finish(one.id, outcome) }
        }
        switch pair.event {
        case .staged: try await store.write { try $0.staging.record([StagedCopy(asset: one.asset, sha256: noise(32))]) }
        case .claimed: _ = try #require(try await store.claim("nas", passingOver: []))
        case .yielded: try await finish(.yielded)
        case .attemptFailed:
            try await finish(.retry(Self.failure, until: scene.clocks.monotonic().advanced(by: .seconds(60))))
        case .refused where pair.state == .staging:
            try await store.write { try $0.staging.fail(one.asset, Self.failure, isGone: false) }
        case .refused where pair.state == .queued:
            // No operation does this: only the rule for it is checked.
            try await store.write { tx in
                if let upload = try tx.uploads.find(one.id) { try tx.transitions.move(upload, by: .refused) }
            }
        case .refused: try await finish(.refused(Self.failure))
        case .verified: try await finish(.verified(Self.remote))
        case .copyLost where pair.state == .queued:
            // The upload that runs finds the copy lost; this one waits for the new copy as well.
            let running = try await store.read { try $0.uploads.of(one.asset) }.first { $0.state == .uploading }
            let id = try #require(running).id
            try await store.write { try $0.attempts.finish(id, .copyLost(Self.failure, .missing)) }
        case .copyLost: try await finish(.copyLost(Self.failure, .missing))
        case .cancelled: _ = try await store.write { try $0.transitions.cancel([one.id]) }
        case .retriedFromCopy: _ = try await store.write { try $0.transitions.retry(one.id, fromCopy: true) }
        case .retriedFromSource: _ = try await store.write { try $0.transitions.retry(one.id, fromCopy: false) }
        case .dismissed: _ = try await store.write { try $0.transitions.dismiss([one.id], .dismissed) }
        }
    }
}
