internal import Core
internal import Synchronization
internal import Transport

/// How far the service's clock is ahead of ours. Learned from answers, and therefore correct only up to the network's
/// delay.
final class ServiceClock: Sendable {
    private let known = Mutex<Duration?>(nil)

    /// Whether an answer contained its time.
    var isKnown: Bool { known.withLock { $0 != nil } }
    /// Zero until an answer contained its time.
    var ahead: Duration {
        get { known.withLock { $0 ?? .zero } }
        set { known.withLock { $0 = newValue } }
    }

    /// - Parameter assumed: The time offset with which the request was signed.
    /// - Returns: Whether an answer is about the time and the request is worth being signed again.
    func isCorrected(by response: Response, now: WallTime, ahead assumed: Duration) -> Bool {
        // An answer to `HEAD` has no error document, and some servers say `AccessDenied`.
        guard response.status == 400 || response.status == 403,
            let theirs = response.headers["Date"].flatMap({ httpDate($0) })
        else { return false }
        let found = Duration.milliseconds(theirs.milliseconds - now.milliseconds)
        guard abs((found - assumed).inMilliseconds) > Self.tolerance else { return false }
        ahead = found
        return true
    }

    /// Services accept signatures within fifteen minutes of their own time. (ms)
    private static let tolerance: Int64 = 300_000
}
