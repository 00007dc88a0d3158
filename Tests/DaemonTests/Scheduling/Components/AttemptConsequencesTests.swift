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
        _ remedy: Remedy, of id: String = "a", http: Int? = nil, attempt: Int = 0, wasAnswered: Bool = false,
        othersWait: Bool = false
    ) -> AttemptEvaluation {
        var failure = Failure(.local, code: .noReply, message: "no answer", at: wall, retryable: true)
        failure.http = http
        return end(
            UploadAttempt.Verdict(
                outcome: .yielded, remedy: remedy, failure: failure, wasAnswered: wasAnswered), of: id,
            attempt: attempt, othersWait: othersWait)
    }

    private func end(
        _ verdict: UploadAttempt.Verdict, of id: String = "a", attempt: Int = 0, othersWait: Bool = false
    ) -> AttemptEvaluation {
        var retry = retry
        retry.attempts = 3
        return AttemptEvaluation(
            verdict: verdict, id: id, destination: "nas", attempt: attempt, retry: retry, credentialKeys: [],
            othersWait: othersWait, now: (wall, now), log: .silent)
    }

    private func accepted(_ id: String) -> AttemptEvaluation {
        end(
            UploadAttempt.Verdict(
                outcome: .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")), wasAnswered: true), of: id)
    }

    private func wait(of end: AttemptEvaluation) -> Duration? {
        guard case .held(_, let until, _, _) = end.verdict.outcome else { return nil }
        return until.since(now)
    }

    @Test(
        "a destination that fails is held, its networks are doubted, and the upload follows one second after the probe")
    func held() {
        var facts = SchedulerFacts()
        var end = end(.holdDestination(after: .seconds(30)))
        #expect(facts.applyVerdict(&end) == [.doubtNetwork])
        #expect(facts.destinations.trouble(of: "nas")?.kind == .destination)
        #expect(wait(of: end) == .seconds(31))
    }

    @Test("an obstacle of one upload holds only that upload")
    func alone() {
        var facts = SchedulerFacts()
        var end = end(.retry(after: .seconds(3000)))
        #expect(facts.applyVerdict(&end).isEmpty)
        #expect(facts.destinations.trouble(of: "nas") == nil)
        #expect(wait(of: end) == .seconds(3000))
    }

    @Test("a first refusal of a key leaves the destination open for another upload that waits, and holds it otherwise")
    func refused() {
        var facts = SchedulerFacts()
        var first = end(.authenticate, http: 401, othersWait: true)
        #expect(facts.applyVerdict(&first) == [.renewSecret])
        #expect(facts.destinations.trouble(of: "nas") == nil)
        var second = end(.authenticate, of: "b", http: 401, othersWait: true)
        #expect(facts.applyVerdict(&second) == [.renewSecret])
        #expect(facts.destinations.trouble(of: "nas")?.kind == .auth)
        // With few refusals the key is tried again soon, by another upload only.
        #expect(facts.destinations.probes == [now.advanced(by: .seconds(10))])
        #expect(wait(of: second) == .seconds(901))
        #expect(facts.refusedUploads(at: "nas") == ["a", "b"])
    }

    @Test("a file that alone is refused again and again holds its destination once, and then waits longer each time")
    func refusedAlone() {
        var facts = SchedulerFacts()
        var before = accepted("b")
        _ = facts.applyVerdict(&before)
        var first = end(.authenticate, http: 403)
        _ = facts.applyVerdict(&first)
        // Uploads that were accepted before prove nothing, and people are told of them.
        let hold = facts.destinations.health(of: "nas").currentHold
        #expect(hold?.kind == .auth)
        #expect(hold?.text.contains("1 upload is refused, others were accepted until \(wall)") == true)
        var after = accepted("c")
        #expect(facts.applyVerdict(&after) == [.endWaits(["a"])])
        var waits: [Duration] = []
        for _ in 0..<4 {
            var again = end(.authenticate, http: 403)
            #expect(facts.applyVerdict(&again) == [.renewSecret])
            #expect(facts.destinations.trouble(of: "nas") == nil)
            waits.append(wait(of: again) ?? .zero)
        }
        #expect(waits == waits.sorted() && waits[3] > waits[0] * 2, "\(waits)")
        // The secret may have been corrected.
        #expect(facts.destinations.reconsiderRefused(at: now) == ["nas"])
    }

    @Test(
        "any status that a refused key is answered with leaves the destination open for another upload that waits",
        arguments: [200, 400, 401, 403, 404])
    func anyStatus(_ status: Int) {
        var facts = SchedulerFacts()
        var first = end(.authenticate, http: status, othersWait: true)
        _ = facts.applyVerdict(&first)
        #expect(facts.destinations.trouble(of: "nas") == nil)
        var second = end(.authenticate, of: "b", http: status, othersWait: true)
        _ = facts.applyVerdict(&second)
        #expect(facts.destinations.probes == [now.advanced(by: .seconds(10))])
        // A new upload tries the key of a destination that was left alone.
        #expect(facts.destinations.keyRefusals(of: "nas")?.isDoubtful == true)
    }

    @Test(
        "a request that is refused like every request of a wrong address uses attempts once others were accepted",
        arguments: [404, 405, 410, 411, 412, 415, 501])
    func refusedFile(_ status: Int) {
        var facts = SchedulerFacts()
        var first = end(.misconfigured, http: status)
        _ = facts.applyVerdict(&first)
        #expect(facts.destinations.trouble(of: "nas")?.kind == .destination)
        #expect(facts.refusedUploads(at: "nas").isEmpty)
        var other = accepted("b")
        _ = facts.applyVerdict(&other)
        for attempt in 0..<2 {
            var again = end(.misconfigured, http: status, attempt: attempt)
            _ = facts.applyVerdict(&again)
            guard case .retry(_, let until) = again.verdict.outcome else {
                Issue.record("\(again.verdict.outcome)")
                continue
            }
            #expect(until > now)
            #expect(facts.destinations.trouble(of: "nas") == nil)
        }
        #expect(facts.refusedUploads(at: "nas") == ["a"])
        // While the destination is held, all are refused.
        var held = end(.misconfigured, of: "c", http: status)
        _ = facts.applyVerdict(&held)
        var probe = end(.misconfigured, http: status, attempt: 2)
        _ = facts.applyVerdict(&probe)
        guard case .held = probe.verdict.outcome else {
            Issue.record("\(probe.verdict.outcome)")
            return
        }
        var success = accepted("d")
        _ = facts.applyVerdict(&success)
        var last = end(.misconfigured, http: status, attempt: 2)
        _ = facts.applyVerdict(&last)
        guard case .refused(let failure, _) = last.verdict.outcome else {
            Issue.record("\(last.verdict.outcome)")
            return
        }
        #expect(failure.message.hasSuffix("(attempt 3 of 3)"))
    }

    @Test("without other accepted uploads, or without an answer of a server, such a failure uses no attempt")
    func noAttempt() {
        for http in [404, nil] {
            var facts = SchedulerFacts()
            for round in 0..<6 {
                var again = end(.misconfigured, http: http)
                _ = facts.applyVerdict(&again)
                guard case .held = again.verdict.outcome else {
                    Issue.record("\(again.verdict.outcome)")
                    return
                }
                if http == nil, round < 5 {
                    var other = accepted("b")
                    _ = facts.applyVerdict(&other)
                }
            }
        }
    }

    @Test("a key that cannot be read holds the destination at once")
    func unreadable() {
        var facts = SchedulerFacts()
        var end = end(.authenticate, othersWait: true)
        _ = facts.applyVerdict(&end)
        #expect(facts.destinations.trouble(of: "nas")?.kind == .auth)
        #expect(facts.destinations.probes == [now.advanced(by: .seconds(900))])
    }

    @Test("an accepted upload ends the trouble of its destination, and the waits of those that the key had held")
    func accepted() {
        var facts = SchedulerFacts()
        var refused = end(.authenticate, http: 401)
        _ = facts.applyVerdict(&refused)
        #expect(facts.destinations.trouble(of: "nas")?.kind == .auth)
        var accepted = accepted("b")
        #expect(facts.applyVerdict(&accepted) == [.endWaits(["a"])])
        #expect(facts.destinations.trouble(of: "nas") == nil)
        #expect(facts.destinations.completedCount(of: "nas") == 1)
    }
}
