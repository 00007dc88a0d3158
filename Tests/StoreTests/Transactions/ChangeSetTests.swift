import Core
import Synchronization
import TestKit
import Testing

@testable import Store

/// Collects what commits report.
final class Reported: Sendable {
    private let changes = Mutex(ChangeSet())

    func add(_ more: ChangeSet) { changes.withLock { $0.formUnion(more) } }
    func take() -> ChangeSet {
        changes.withLock { changes in
            defer { changes = [] }
            return changes
        }
    }
}

extension Scene {
    /// The work that is left with the files of the scene, as for a removable medium.
    func mediaWork() async throws -> RemovableMediaBacklog {
        try await store.read { try $0.removableMedia.work(in: ["cam"], on: "uuid") }
    }
}

@Suite("Changes that wake")
struct ChangeSetTests {
    /// A step in the life of an upload, and what it must wake.
    enum Step: CaseIterable, Sendable {
        case recorded, staged, claimed, yielded, failedAttempt, waitEnded, paused, resumed, completed, failed
        case copyLost, skipped, sourceChanged, cancelled, cancelledWithRemains, retriedFromCopy, retriedFromSource
        case dismissed, renewedCheckpoint, releaseFinished, keptSourceExpired, keptAgain, unsettled, checkpointStored
        case superseded, supersededUnclaimed, notesCleared, releaseFailed, expired, renewed, duplicate

        var changes: ChangeSet {
            switch self {
            case .recorded: [.arrivals, .copies, .events]
            case .staged, .retriedFromCopy: [.queued, .events]
            case .waitEnded: [.queued]
            case .claimed, .yielded, .failedAttempt, .paused: [.events]
            case .checkpointStored: []
            case .unsettled: [.unsettled]
            // A new version arrives, and the upload of the earlier one ends.
            case .superseded: [.arrivals, .copies, .due, .lists, .superseded, .events]
            case .supersededUnclaimed: [.arrivals, .copies, .due, .lists, .events]
            case .resumed: [.queued, .copies, .events]
            case .completed, .cancelled, .skipped, .expired: [.due, .lists, .events]
            // It keeps its source and its copy.
            case .failed: [.lists, .events]
            case .cancelledWithRemains: [.due, .lists, .leftovers, .events]
            case .sourceChanged: [.due, .lists, .events]
            case .copyLost, .retriedFromSource: [.copies, .events]
            case .renewed: [.copies]
            case .dismissed: [.lists, .due, .events]
            case .duplicate: [.queued, .due, .lists, .events]
            case .renewedCheckpoint: [.leftovers]
            case .releaseFinished: [.released, .events]
            case .releaseFailed: [.releaseNotes]
            case .keptSourceExpired, .keptAgain, .notesCleared: [.due]
            }
        }
    }

    private static let failure = Failure(
        .local, code: .init(rawValue: "test"), message: "failed", at: WallTime(milliseconds: 0), retryable: false)
    private static let remote = RemoteObject(id: "x", url: nil, verifiedBy: "digest")

    @Test(
        "each step in the life of an upload wakes those who go on with it, and no other loop", arguments: Step.allCases)
    func steps(_ step: Step) async throws {
        let scene = try await Scene()
        let (store, reported) = (scene.store, Reported())
        await store.onChange { reported.add($0) }
        let arrival = Scene.arrival(Scene.file("a"), action: step == .keptSourceExpired ? .keep : .delete)
        var work = RemovableMediaBacklog()
        func clear() async throws {
            _ = reported.take()
            work = try await scene.mediaWork()
        }
        func claimed() async throws -> (asset: Int64, id: String) {
            let staged = try await scene.stage(arrival)
            _ = try #require(try await store.claim("nas", passingOver: []))
            try await clear()
            return (staged.asset, staged.uploads[0])
        }
        func end(_ outcome: AttemptOutcome) async throws -> (asset: Int64, id: String) {
            let one = try await claimed()
            try await store.write { try $0.attempts.finish(one.id, outcome) }
            return one
        }
        func ended(_ outcome: AttemptOutcome) async throws -> (asset: Int64, id: String) {
            let one = try await end(outcome)
            try await clear()
            return one
        }
        let later = scene.clocks.monotonic().advanced(by: .seconds(60))
        switch step {
        case .recorded: try await store.write { _ = try $0.arrivals.record([arrival]) }
        case .staged:
            let outcomes = try await store.write { try $0.arrivals.record([arrival]) }
            let asset = try #require(outcomes.first?.asset)
            try await clear()
            try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        case .claimed:
            _ = try await scene.stage(arrival)
            try await clear()
            _ = try #require(try await store.claim("nas", passingOver: []))
        case .yielded: _ = try await end(.yielded)
        case .failedAttempt: _ = try await end(.retry(Self.failure, until: later))
        case .waitEnded:
            _ = try await ended(.retry(Self.failure, until: later))
            try await store.write { try $0.waits.end(for: "nas") }
        case .paused, .resumed:
            let staged = try await scene.stage(arrival)
            if step == .resumed { try await store.write { try $0.transitions.pause(staged.uploads, true) } }
            try await clear()
            try await store.write { try $0.transitions.pause(staged.uploads, step == .paused) }
        case .completed: _ = try await end(.verified(Self.remote))
        case .failed: _ = try await end(.refused(Self.failure))
        case .copyLost: _ = try await end(.copyLost(Self.failure, .missing))
        case .skipped: _ = try await end(.skipped(Self.failure))
        case .sourceChanged: _ = try await end(.sourceChanged(Self.failure, isFinished: false))
        case .cancelled:
            let staged = try await scene.stage(arrival)
            try await clear()
            _ = try await store.write { try $0.transitions.cancel(staged.uploads) }
        case .cancelledWithRemains:
            let one = try await claimed()
            try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: one.id) }
            _ = try await store.write { try $0.transitions.cancel([one.id]) }
        case .retriedFromCopy, .retriedFromSource:
            let one = try await ended(.refused(Self.failure))
            _ = try await store.write { try $0.transitions.retry(one.id, fromCopy: step == .retriedFromCopy) }
        case .dismissed:
            let one = try await ended(.refused(Self.failure))
            _ = try await store.write { try $0.transitions.dismiss([one.id], .dismissed) }
        case .checkpointStored:
            let one = try await claimed()
            try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: one.id, acked: 10) }
        case .renewedCheckpoint:
            let one = try await claimed()
            try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: one.id) }
            try await store.writeHeld {
                try $0.checkpoints.renew(Checkpoint(["url": "v"]), for: one.id, leaving: Checkpoint(["url": "u"]))
            }
        case .releaseFinished:
            let one = try await ended(.verified(Self.remote))
            try await store.write { try $0.releases.finish(one.asset, .released) }
        case .keptSourceExpired:
            let one = try await ended(.verified(Self.remote))
            try await store.write { try $0.releases.finish(one.asset, .kept) }
            try await clear()
            #expect(try await store.write { try $0.keptSources.expire([one.asset]) } == [one.asset])
        case .keptAgain:
            let one = try await ended(.verified(Self.remote))
            try await store.write { try $0.releases.finish(one.asset, .kept, note: "unsure") }
            try await clear()
            try await store.requeueKept([one.asset])
        case .superseded, .supersededUnclaimed:
            var first = arrival
            first.stagingMode = .inPlace
            _ = try await scene.stage(first)
            if step == .superseded { _ = try #require(try await store.claim("nas", passingOver: [])) }
            try await clear()
            let next = Scene.arrival(Scene.file("a", size: 101, modified: 2_000))
            _ = try await store.write { try $0.arrivals.record([next]) }
        case .releaseFailed:
            let one = try await ended(.verified(Self.remote))
            try await store.write { try $0.releases.recordFailure(one.asset, note: "the card is locked") }
        case .expired:
            let staged = try await scene.stage(arrival)
            try await clear()
            #expect(try await store.write { try $0.transitions.expire(staged.uploads) }.count == 1)
        case .renewed:
            _ = try await store.write { try $0.arrivals.record([arrival]) }
            try await clear()
            let next = Scene.arrival(Scene.file("a", size: 101, modified: 2_000))
            _ = try await store.write { try $0.arrivals.record([next]) }
        case .duplicate:
            let digest = noise(32)
            _ = try await scene.stage(Scene.arrival(Scene.file("a", size: 5_000)), sha256: digest)
            let first = try #require(try await store.claim("nas", passingOver: []))
            try await store.write { try $0.attempts.finish(first.upload.id, .verified(Self.remote)) }
            let outcomes = try await store.write {
                try $0.arrivals.record([Scene.arrival(Scene.file("b", size: 5_000))])
            }
            let asset = try #require(outcomes.first?.asset)
            try await clear()
            try await store.write {
                try $0.staging.record([StagedCopy(asset: asset, sha256: digest, skipsDuplicates: true)])
            }
        case .notesCleared: try await store.write { try $0.releases.clearNotes(of: ["cam"]) }
        case .unsettled:
            let outcomes = try await store.write { try $0.arrivals.record([arrival]) }
            let asset = try #require(outcomes.first?.asset)
            try await clear()
            try await store.write { try $0.staging.unsettle(asset) }
        }
        #expect(reported.take() == step.changes)
        // `RemovableMedia` counts again only after these.
        if try await scene.mediaWork() != work { #expect(!step.changes.isDisjoint(with: .ofMediaWork)) }
    }

    @Test("a change that is undone wakes no loop")
    func undone() async throws {
        struct Undone: Error {}
        let scene = try await Scene()
        let reported = Reported()
        await scene.store.onChange { reported.add($0) }
        await #expect(throws: Undone.self) {
            try await scene.store.write { tx in
                _ = try tx.arrivals.record([Scene.arrival(Scene.file("a"))])
                throw Undone()
            }
        }
        try await scene.store.testWrite()
        #expect(reported.take() == [])
    }
}
