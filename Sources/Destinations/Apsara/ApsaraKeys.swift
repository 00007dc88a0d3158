internal import Core
internal import Linux
internal import Transport

/// The key of one medium. It is renewed once for all parts, before it ends or when the storage refuses it as ended.
actor ApsaraKeys: S3KeySource {
    /// The documentation says an hour, and the service gives 3,000 s (VOD developer guide, "Upload URLs and
    /// credentials").
    static let longestLife: Duration = .seconds(3000)
    /// A key is renewed when this much of its life is left, or twice the time of a part where that is more.
    private static let margin: Duration = .seconds(120)
    /// After a failed renewal, the pause before the next try while the old key is still valid.
    private static let pause: Duration = .seconds(10)
    /// For this long after a right has ended, the storage may also answer `AccessDenied`.
    private static let lastMoments: Duration = .seconds(60)

    private let clocks: any Clocks
    /// Asks for a new right to the same medium.
    private let renewal: @Sendable (CredentialRenewal.Reason, RequestContext) async throws -> ApsaraGrant
    private let clock: ServiceClock
    /// Whether a question about a possibly complete object may ask for a new right. VOD may take that request as one
    /// to overwrite the object.
    private let renewsForQuestions: Bool
    /// Whether a new grant may be requested before this one is refused: the new grant may be for another medium.
    private let renewsEarly: Bool
    private let question = SingleFlight()
    private var held: ApsaraGrant
    private var end: MonotonicTime
    private var life: Duration
    /// Number of the reading, so that a refusal of an old key does not discard a new one.
    private var reading = 0
    private var isRefused = false
    private var failedAt: MonotonicTime?
    /// The right now leads to another object. That is final for all parts of the attempt, because asking again might
    /// make another medium.
    private var hasMoved: UploadError?
    private var longestPart: Duration = .zero

    init(
        _ grant: ApsaraGrant, left: Duration, clocks: any Clocks, clock: ServiceClock, renewsForQuestions: Bool = true,
        renewsEarly: Bool = true,
        renewal: @escaping @Sendable (CredentialRenewal.Reason, RequestContext) async throws -> ApsaraGrant
    ) {
        self.clocks = clocks
        self.clock = clock
        self.renewsForQuestions = renewsForQuestions
        self.renewsEarly = renewsEarly
        self.renewal = renewal
        held = grant
        life = left
        end = clocks.monotonic().advanced(by: left)
    }

    /// How long a right that was just given is valid. A local clock that was never set gives no answer.
    static func life(of grant: ApsaraGrant, now: WallTime, ahead: Duration) -> Duration {
        guard let end = grant.end else { return longestLife }
        let left = Duration.milliseconds(end.milliseconds - now.advanced(by: ahead).milliseconds)
        return left > .zero ? min(left, longestLife) : longestLife
    }

    func current(_ context: RequestContext) async throws -> (key: S3Key, reading: Int) {
        if let hasMoved { throw hasMoved }
        if !isDue { return (held.key, reading) }
        do { try await question.join { try await self.renew(context) } } catch let error as UploadError {
            if error.failure.code == .mediaMoved { throw error }
            // A key that is still valid is used although its renewal failed.
            if !isRefused, clocks.monotonic() < end {
                failedAt = clocks.monotonic()
                return (held.key, reading)
            }
            throw error
        }
        return (held.key, reading)
    }

    private var isDue: Bool {
        if isRefused { return true }
        guard renewsEarly else { return false }
        let now = clocks.monotonic()
        if let failedAt, now.since(failedAt) < Self.pause, now < end { return false }
        // A short-lived key must not be spent on renewals.
        let margin = min(max(Self.margin, longestPart * 2), life / 2)
        return now.advanced(by: margin) >= end
    }

    private func renew(_ context: RequestContext) async throws {
        // The renewal before this one has already brought a new key.
        guard isDue else { return }
        if let hasMoved { throw hasMoved }
        let grant: ApsaraGrant
        do { grant = try await renewal(isRefused ? .refused : .ending, context) } catch let error as UploadError {
            if error.failure.code == .mediaMoved { hasMoved = error }
            throw error
        }
        held = grant
        life = Self.life(of: grant, now: clocks.wall(), ahead: clock.ahead)
        end = clocks.monotonic().advanced(by: life)
        reading += 1
        isRefused = false
        failedAt = nil
    }

    func refused(_ reading: Int) { if reading == self.reading { isRefused = true } }

    /// Renews only for an answer that means the right has ended: any other refusal would come again after each renewal.
    func renew(
        _ key: S3Key, _ reading: Int, after verdict: S3Verdict, isHead: Bool, _ context: RequestContext
    ) async -> Bool {
        guard hasEnded(verdict, isHead: isHead) else { return false }
        refused(reading)
        return true
    }

    private func hasEnded(_ verdict: S3Verdict, isHead: Bool) -> Bool {
        if isHead, !renewsForQuestions { return false }
        switch verdict.code {
        case let code? where S3Verdict.endsAtOSS.contains(code): return true
        case "AccessDenied", nil:
            guard verdict.concernsKey || isHead && verdict.hasNoBody else { return false }
            return clocks.monotonic().advanced(by: Self.lastMoments) >= end
        default: return false
        }
    }

    func carried(for time: Duration) async { longestPart = max(longestPart, time) }
}
