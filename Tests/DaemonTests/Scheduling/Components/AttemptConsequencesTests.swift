import Core
import Linux
import Store
import Testing

@testable import Daemon

@Suite("Consequences of an attempt's end")
struct AttemptConsequencesTests {
    private let wall = WallTime(milliseconds: 1_000_000)
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)
    private let retry = Backoff(first: .seconds(10), ceiling: .seconds(1000))

    private func end(
        _ remedy: Remedy, of id: String = "a", http: Int? = nil, wasAnswered: Bool = false, othersWait: Bool = false
    ) -> AttemptEnd {
        var failure = Failure(.local, code: .noReply, message: "no answer", at: wall, retryable: true)
        failure.http = http
        return end(
            UploadAttempt.Verdict(
                outcome: .yielded, remedy: remedy, failure: failure, wasAnswered: wasAnswered), of: id,
            othersWait: othersWait)
    }

    private func end(
        _ verdict: UploadAttempt.Verdict, of id: String = "a", othersWait: Bool = false
    ) -> AttemptEnd {
        AttemptEnd(
            verdict: verdict, id: id, destination: "nas", retry: retry, credentialKeys: [], othersWait: othersWait,
            now: (wall, now), log: .silent)
    }

    private func accepted(_ id: String) -> AttemptEnd {
        end(
            UploadAttempt.Verdict(
                outcome: .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")), wasAnswered: true), of: id)
    }

    private func wait(of end: AttemptEnd) -> Duration? {
        guard case .held(_, let until, _, _) = end.verdict.outcome else { return nil }
        return until.since(now)
    }

    @Test(
        "a destination that fails is held, its networks are doubted, and the upload follows one second after the probe")
    func held() {
        var facts = SchedulerFacts()
        var end = end(.holdDestination(after: .seconds(30)))
        #expect(facts.settle(&end) == [.doubtNetwork])
        #expect(facts.destinations.trouble(of: "nas")?.kind == .destination)
        #expect(wait(of: end) == .seconds(31))
    }

    @Test("an obstacle of one upload holds only that upload")
    func alone() {
        var facts = SchedulerFacts()
        var end = end(.retry(after: .seconds(3000)))
        #expect(facts.settle(&end).isEmpty)
        #expect(facts.destinations.trouble(of: "nas") == nil)
        #expect(wait(of: end) == .seconds(3000))
    }

    @Test("a first refusal of a key leaves the destination open for another upload that waits, and holds it otherwise")
    func refused() {
        var facts = SchedulerFacts()
        var first = end(.authenticate, http: 401, othersWait: true)
        #expect(facts.settle(&first) == [.renewSecret])
        #expect(facts.destinations.trouble(of: "nas") == nil)
        var second = end(.authenticate, of: "b", http: 401, othersWait: true)
        #expect(facts.settle(&second) == [.renewSecret])
        #expect(facts.destinations.trouble(of: "nas")?.kind == .auth)
        // With few refusals the key is tried again soon, by another upload only.
        #expect(facts.destinations.probes == [now.advanced(by: .seconds(10))])
        #expect(wait(of: second) == .seconds(901))
        #expect(facts.refusedUploads(at: "nas") == ["a", "b"])
    }

    @Test("an accepted upload ends the trouble of its destination, and the waits of those that the key had held")
    func accepted() {
        var facts = SchedulerFacts()
        var refused = end(.authenticate, http: 401)
        _ = facts.settle(&refused)
        #expect(facts.destinations.trouble(of: "nas")?.kind == .auth)
        var accepted = accepted("b")
        #expect(facts.settle(&accepted) == [.endWaits(["a"])])
        #expect(facts.destinations.trouble(of: "nas") == nil)
        #expect(facts.destinations.completedCount(of: "nas") == 1)
    }
}
