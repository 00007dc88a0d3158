internal import Core
internal import Linux
internal import Store

/// The verdict of an attempt that has ended, and the values besides the scheduler's facts that its consequences depend
/// on.
struct AttemptEvaluation {
    var verdict: UploadAttempt.Verdict
    /// The upload.
    let id: String
    let destination: String
    /// How many attempts its destination has refused before this one.
    let attempt: Int
    let retry: Backoff
    /// The configuration keys of the destination's credentials.
    let credentialKeys: [String]
    /// Whether another upload could be sent to the destination now.
    let othersWait: Bool
    let now: (wall: WallTime, monotonic: MonotonicTime)
    let log: Log

    /// A remedy without any wait is applied at once this many times in a row; then it waits like every other.
    fileprivate static let maxTriesAtOnce = 3

    /// A full destination still answers where an upload stands, but accepts nothing.
    fileprivate var isUp: Bool {
        let isFull = if case .outOfSpace? = verdict.remedy { true } else { false }
        return verdict.wasAnswered && !isFull
    }

    fileprivate mutating func hold(_ failure: Failure, for wait: Duration) {
        verdict.outcome = .held(failure, until: now.monotonic.advanced(by: wait))
    }
}

/// An action of the scheduler that an attempt's end requires.
enum AttemptConsequence: Hashable {
    /// The next request to the destination reads its secret again.
    case renewSecret
    /// The destination may be reachable by another interface by now.
    case doubtNetwork
    /// These uploads wait no longer.
    case endWaits(Set<String>)
}

extension SchedulerFacts {
    /// Updates the facts about the destination and the upload, and fills in when a held upload may be sent again.
    mutating func applyVerdict(_ end: inout AttemptEvaluation) -> Set<AttemptConsequence> {
        var consequences: Set<AttemptConsequence> = []
        if end.verdict.remedy?.mayConcernSecret == true { consequences.insert(.renewSecret) }
        if concernsOnlyThisUpload(&end) { return consequences }
        let (name, id) = (end.destination, end.id)
        let trouble = destinations.trouble(of: name)
        if isFileRefused(&end, isHeld: trouble != nil) { return consequences }
        if case .retry(let after)? = end.verdict.remedy, let failure = end.verdict.failure {
            let times = uploads.recordSetback(id, wasAnswered: end.verdict.wasAnswered)
            let isAtOnce = after == .zero && times <= AttemptEvaluation.maxTriesAtOnce
            end.hold(
                failure,
                for: isAtOnce
                    ? .zero : max(after ?? .zero, end.retry.wait(afterFailures: times, jitter: Random.jitter())))
        }
        if let failure = end.verdict.failure,
            let wait = uploads.ownWait(
                id, end.verdict.remedy, accepted: destinations.completedCount(of: name), isHeld: trouble != nil,
                retry: end.retry, jitter: Random.jitter())
        {
            end.hold(failure, for: wait)
            AttemptLog(log: end.log).reportAlone(
                "upload waits; other uploads to its destination succeed", id, at: name, failure, wait: wait)
        } else if let remedy = end.verdict.remedy, let failure = end.verdict.failure,
            let hold = destinations.hold(
                name,
                DestinationTracker.Fault(
                    failure: failure, remedy: remedy, isUp: end.isUp, retry: end.retry,
                    longestWait: destinations.timeToTryKey(of: name, remedy, othersWait: end.othersWait),
                    note: remedy == .authenticate ? destinations.doubt(ofKeyAt: name) : nil),
                end.credentialKeys, now: end.now.wall, monotonic: end.now.monotonic, end.log)
        {
            if hold.kind == .destination { consequences.insert(.doubtNetwork) }
            // After the next probe, so that another upload makes it: this file may be the one that makes the server
            // fail. A key that is doubted is tried early by others only: this upload would be refused again.
            let isRefused = hold.kind == .auth
            let wait = isRefused ? max(hold.wait, DestinationHealth.credentialRetryWait) : hold.wait
            end.hold(failure, for: wait + .seconds(1))
            if isRefused { destinations.recordKeyWait(id, of: name) }
        } else if end.verdict.wasAnswered {
            if case .verified = end.verdict.outcome {
                destinations.accepted(name, at: end.now.wall)
                // Uploads that a wrong key has held are tried at once when the destination accepts the present one.
                consequences.insert(.endWaits(destinations.endWaitsForKey(of: name)))
            }
            if trouble != nil { end.log.notice("destination works again", ["destination": name]) }
            destinations.succeeded(name)
        }
        return consequences
    }

    /// Whether a server refuses the file alone with an answer that may concern every request: it accepted others after
    /// an earlier one. Then the upload waits alone, and the answer uses an attempt.
    private mutating func isFileRefused(_ end: inout AttemptEvaluation, isHeld: Bool) -> Bool {
        guard case .misconfigured? = end.verdict.remedy, let failure = end.verdict.failure, failure.http != nil,
            uploads.isFileRefused(
                end.id, generation: destinations.generation(of: end.destination),
                accepted: destinations.completedCount(of: end.destination), isHeld: isHeld)
        else { return false }
        end.verdict.remedy = .refused(after: nil)
        end.verdict.refuse(failure, attempt: end.attempt + 1, end.retry, now: end.now.monotonic)
        return true
    }

    /// Whether a refusal of a key leaves its destination alone; in that case only the upload waits.
    private mutating func concernsOnlyThisUpload(_ end: inout AttemptEvaluation) -> Bool {
        // Whatever its status: some services answer a wrong key with 400 or 404. Without an answer, the secret cannot be
        // read or used, for no upload.
        guard case .authenticate? = end.verdict.remedy, let failure = end.verdict.failure, failure.http != nil else {
            return false
        }
        let text: String
        let times: Int
        switch destinations.refuseKey(of: end.destination, for: end.id, othersWait: end.othersWait) {
        case .key: return false
        case .unknown:
            (text, times) = ("upload refused; the next upload shows whether the key or the file is at fault", 1)
        case .file(let count): (text, times) = ("upload waits; other uploads with the same key were accepted", count)
        }
        let wait = end.retry.wait(afterFailures: times, jitter: Random.jitter())
        end.hold(failure, for: wait)
        AttemptLog(log: end.log).reportAlone(text, end.id, at: end.destination, failure, wait: wait)
        return true
    }
}

extension Remedy {
    /// Whether the cause of a refusal may be a secret that a person corrects, so that the next try reads it again. Some
    /// destinations report a wrong key with 200, 400 or 404.
    var mayConcernSecret: Bool {
        switch self {
        case .authenticate, .misconfigured, .refused, .failUpload: true
        case .holdDestination, .outOfSpace, .rateLimit, .retry, .pending, .lackQuota, .restage: false
        }
    }
}
