import API
import Core
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Views of uploads")
struct UploadViewBuilderTests {
    private static let now = WallTime(milliseconds: 1_795_161_600_000)

    private static func builder(
        _ clocks: ManualClocks = ManualClocks(), ran: Int64 = 0
    ) throws -> UploadViewBuilder {
        UploadViewBuilder(try PolicySnapshot.given(clocks), ran: ran)
    }

    private static func row(_ state: UploadState) async throws -> UploadRow {
        let scene = try await ComponentScene()
        var row = try await scene.row(try await scene.record("a.mp4"))
        row.upload.state = state
        return row
    }

    private static func hold(_ kind: Hold.Kind, holdsOnlyNewUploads: Bool = false) -> Hold {
        Hold(kind, since: WallTime(milliseconds: 0), holdsOnlyNewUploads: holdsOnlyNewUploads, text: kind.rawValue)
    }

    private static func failure(_ kind: Failure.Class, _ code: Failure.Code = .http(503)) -> Failure {
        Failure(kind, code: code, message: "it failed", at: now, retryable: true)
    }

    @Test("a queued upload is shown as waiting exactly while it has a hold")
    func waiting() async throws {
        let row = try await Self.row(.queued)
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).state == .queued)
        var facts = UploadViewBuilder.Facts()
        facts.ofClass = [Self.hold(.rule)]
        let view = try Self.builder().view(row, facts)
        #expect(view.state == .waiting)
        #expect(view.holds.map(\.kind.known) == [.rule])
        #expect(try Self.builder().viewWithoutHolds(row, facts).state == .queued)
    }

    @Test("a hold on a class holds an upload only since the upload was created")
    func holdSince() async throws {
        var row = try await Self.row(.queued)
        row.upload.createdAt = Self.now
        var facts = UploadViewBuilder.Facts()
        facts.ofClass = [Self.hold(.rule)]
        #expect(try Self.builder().view(row, facts).holds.map(\.since) == [Self.now.description])
    }

    @Test("a started upload is not held by a hold that spares started uploads")
    func begun() async throws {
        var row = try await Self.row(.queued)
        row.upload.isBegun = true
        var facts = UploadViewBuilder.Facts()
        facts.ofClass = [Self.hold(.quota, holdsOnlyNewUploads: true), Self.hold(.busy)]
        #expect(try Self.builder().view(row, facts).holds.map(\.kind.known) == [.busy])
    }

    @Test("a manual pause comes first, and an unwritable state last")
    func order() async throws {
        var row = try await Self.row(.queued)
        row.upload.pausedAt = Self.now
        var facts = UploadViewBuilder.Facts()
        facts.never = Self.hold(.quota)
        facts.ofClass = [Self.hold(.rule)]
        facts.own = [Self.hold(.busy)]
        facts.ofCopy = Self.hold(.absent)
        facts.ofState = Self.hold(.disk)
        let view = try Self.builder().view(row, facts)
        #expect(view.holds.map(\.kind.known) == [.operator, .quota, .rule, .busy, .absent, .disk])
        #expect(view.isPaused)
    }

    @Test(
        "the wait for the next attempt has the kind of its failure",
        arguments: [
            (failure(.transient), Hold.Kind.backoff), (failure(.quota), .quota),
            (failure(.transient, .wastedOnMetered), .metered),
            (failure(.transient, .beforeUpload), .busy),
        ])
    func backoff(_ failure: Failure, _ kind: Hold.Kind) async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.queued)
        row.failure = failure
        row.upload.backoffUntil = clocks.monotonic().advanced(by: .seconds(60))
        let view = try Self.builder(clocks).view(row, UploadViewBuilder.Facts())
        #expect(view.holds.map(\.kind.known) == [kind])
        #expect(view.nextAttemptAt == clocks.wall().advanced(by: .seconds(60)).description)
        // The rule is named only where it decides.
        #expect(view.holds.first?.text.contains("the next attempt follows") == (kind == .backoff))
    }

    @Test(
        "the rule of `retry` is not named where the failure sets the time",
        arguments: [Failure.Code.uploadLost, .nameInUse])
    func ownWait(_ code: Failure.Code) async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.queued)
        row.failure = Self.failure(.protocol, code)
        row.upload.backoffUntil = clocks.monotonic().advanced(by: .seconds(60))
        let hold = try Self.builder(clocks).view(row, UploadViewBuilder.Facts()).holds.first
        #expect(hold?.kind.known == .backoff && hold?.text.contains("the next attempt") == false)
    }

    @Test("an upload that can never be sent has no next attempt")
    func never() async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.queued)
        row.upload.backoffUntil = clocks.monotonic().advanced(by: .seconds(60))
        var facts = UploadViewBuilder.Facts()
        facts.never = Self.hold(.quota)
        #expect(try Self.builder(clocks).view(row, facts).nextAttemptAt == nil)
        #expect(try Self.builder(clocks).viewWithoutHolds(row, facts).nextAttemptAt == nil)
    }

    @Test("the trouble of a destination is shown instead of the wait of one upload")
    func destinationTrouble() async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.queued)
        row.failure = Self.failure(.transient)
        row.upload.backoffUntil = clocks.monotonic().advanced(by: .seconds(60))
        var facts = UploadViewBuilder.Facts()
        facts.ofClass = [Self.hold(.destination)]
        #expect(try Self.builder(clocks).view(row, facts).holds.map(\.kind.known) == [.destination])
    }

    @Test("an upload that waits longer than its destination is held shows both, each with its time")
    func longerThanDestination() async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.queued)
        row.failure = Self.failure(.transient)
        row.upload.backoffUntil = clocks.monotonic().advanced(by: .seconds(60))
        var facts = UploadViewBuilder.Facts()
        var hold = Self.hold(.destination)
        for (held, kinds) in [(10, [Hold.Kind.destination, .backoff]), (59, [.destination]), (90, [.destination])] {
            hold.until = clocks.wall().advanced(by: .seconds(held))
            facts.ofClass = [hold]
            let view = try Self.builder(clocks).view(row, facts)
            #expect(view.holds.map(\.kind.known) == kinds)
            #expect(view.nextAttemptAt == clocks.wall().advanced(by: .seconds(60)).description)
            #expect(kinds.count == 1 || view.holds.last?.until == view.nextAttemptAt)
        }
    }

    @Test("the fraction is 1 only when every byte is confirmed", arguments: [UploadState.queued, .completed])
    func fraction(_ state: UploadState) async throws {
        var row = try await Self.row(state)
        row.upload.acked = row.asset.stagedSize
        let progress = try Self.builder().view(row, UploadViewBuilder.Facts()).progress
        #expect((progress.fraction == 1) == (state == .completed))
        #expect(progress.sent == progress.total)
    }

    @Test("bytes of a failed attempt count only as far as they were acknowledged")
    func doubtedBytes() async throws {
        var row = try await Self.row(.queued)
        (row.upload.acked, row.upload.sent) = (10, 70)
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).progress.sent == 70)
        row.upload.failingSince = 1
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).progress.sent == 10)
    }

    @Test("a running upload shows no failure that it may overcome, and a waiting one does")
    func failureShown() async throws {
        var row = try await Self.row(.uploading)
        row.failure = Self.failure(.transient)
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).error == nil)
        row.upload.state = .queued
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).error?.code == "http_503")
        row.upload.state = .completed
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).error == nil)
    }

    @Test("an upload that pauses after its running parts is held by the pause alone")
    func pausing() async throws {
        var row = try await Self.row(.uploading)
        row.upload.pausedAt = Self.now
        var facts = UploadViewBuilder.Facts()
        facts.shouldPause = true
        facts.ofClass = [Self.hold(.rule), Self.hold(.global)]
        #expect(try Self.builder().view(row, facts).holds.map(\.kind.known) == [.operator, .global])
        facts.shouldPause = false
        #expect(try Self.builder().view(row, facts).holds.isEmpty)
    }

    @Test("an entry leaves its list when the time of the list is over")
    func expiry() async throws {
        let clocks = ManualClocks()
        var row = try await Self.row(.completed)
        (row.upload.finishedAt, row.upload.ranAt) = (clocks.wall(), 0)
        let end = clocks.wall().advanced(by: .seconds(7 * 86_400))
        #expect(try Self.builder(clocks).view(row, UploadViewBuilder.Facts()).expiresAt == end.description)
        // The daemon has run for longer than that.
        let later = try Self.builder(clocks, ran: 8 * 86_400_000)
        #expect(later.view(row, UploadViewBuilder.Facts()).expiresAt == nil)
        row.upload.state = .queued
        #expect(try Self.builder(clocks).view(row, UploadViewBuilder.Facts()).expiresAt == nil)
    }

    @Test("states of a newer program are shown unchanged")
    func unknown() async throws {
        var row = try await Self.row(.queued)
        row.upload.unknown.state = "floating"
        row.asset.unknown.action = "shred"
        row.asset.unknown.sourceState = "melted"
        let view = try Self.builder().view(row, UploadViewBuilder.Facts())
        #expect([view.state.rawValue, view.sourceAction, view.sourceState] == ["floating", "shred", "melted"])
        // Whether it is under way is not known, so its state explains nothing.
        #expect(view.explanation == nil)
    }

    @Test("a state that needs no further facts explains itself")
    func explanation() async throws {
        var row = try await Self.row(.failed)
        row.failure = Self.failure(.permanent)
        let text = try #require(try Self.builder().view(row, UploadViewBuilder.Facts()).explanation)
        #expect(text.contains("it failed"))
        #expect(text.contains("sluice retry \(row.upload.id)"))
        row.upload.state = .queued
        row.failure = nil
        #expect(try Self.builder().view(row, UploadViewBuilder.Facts()).explanation == nil)
        var facts = UploadViewBuilder.Facts()
        facts.ofClass = [Self.hold(.rule)]
        #expect(try Self.builder().view(row, facts).explanation == "rule")
    }

    // MARK: What policy decides

    private static func closedWindows(_ settings: inout Settings) {
        settings.policy.rules.windowRule = .windows([Window(days: [], from: 0, to: 60)])
    }

    @Test("policy holds all uploads of a class, except for those with an exemption of their own")
    func exempt() async throws {
        let (clocks, row) = (ManualClocks(), try await Self.row(.queued))
        var others = row
        others.upload.id = "other"
        let now = try PolicySnapshot.given(clocks, Self.closedWindows) { facts in
            facts.overrides.replace([
                OverrideRecord(
                    scope: .upload, name: row.upload.id, kind: .exemption(.window), since: clocks.wall(),
                    until: clocks.wall().advanced(by: .seconds(60)), who: "root")
            ])
        }
        var builder = UploadViewBuilder(now, ran: 0)
        for _ in 1...2 {
            #expect(builder.facts(of: row).ofClass.isEmpty)
            #expect(builder.facts(of: others).ofClass.map(\.kind) == [.rule])
        }
        others.upload.folder = "door"
        others.upload.destination = "gone"
        #expect(builder.facts(of: others).ofClass.map(\.kind) == [.destination])
    }

    @Test("an upload whose next piece never fits into its quota is held for that while it is queued")
    func neverSent() async throws {
        var row = try await Self.row(.queued)
        row.upload.isBegun = true
        let now = try PolicySnapshot.given { settings in
            settings.policy.rules.quotas = [Quota(period: .day, bytes: 100_000)]
        } facts: { facts in
            _ = facts.network.record(
                NetworkMonitor.Reached(
                    reachability: .any, route: .open(.any), since: WallTime(milliseconds: 0)), for: "nas")
            facts.quotaWaits.begin()
            facts.quotaWaits.ended(
                row.upload.id,
                lacking: QuotaWait(kind: QuotaState.Class("nas", from: "cam"), bytes: 1 << 20))
        }
        var builder = UploadViewBuilder(now, ran: 0)
        #expect(builder.facts(of: row).never?.kind == .quota)
        var other = row
        other.upload.id = "other"
        #expect(builder.facts(of: other).never == nil)
        row.upload.state = .completed
        #expect(builder.facts(of: row).never == nil)
    }

    @Test("the lack of space at a destination holds an upload that has not begun there")
    func space() async throws {
        let clocks = ManualClocks()
        let now = try PolicySnapshot.given(clocks) { _ in
        } facts: { facts in
            facts.destinations.capacityAnswered(
                "nas", RemoteSpace(free: 10), underWay: [], now: clocks.wall(), monotonic: clocks.monotonic(),
                lasting: .seconds(60))
            facts.destinations.setCapacityWait(
                "nas", RemoteCapacity.Waiting(id: "a", name: "a.mp4", missing: 100, since: clocks.wall()))
        }
        var builder = UploadViewBuilder(now, ran: 0)
        var row = try await Self.row(.queued)
        #expect(builder.facts(of: row).own.map(\.kind) == [.quota])
        row.upload.isBegun = true
        #expect(builder.facts(of: row).own.isEmpty)
        row.upload.isBegun = false
        row.upload.state = .staging
        #expect(builder.facts(of: row).own.isEmpty)
    }

    @Test("an upload that waits for another one with the same content names it")
    func duplicate() async throws {
        let row = try await Self.row(.uploading)
        let hold = UploadViewBuilder.hold(while: row.upload, sends: row.asset)
        #expect(hold.kind == .busy && hold.since == row.upload.createdAt)
        #expect(hold.text.contains("a.mp4 of folder cam") && hold.text.contains(row.upload.id))
    }
}
