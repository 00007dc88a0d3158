internal import Core
internal import Transport

/// The key of one medium: renewed for all parts at once before it ends, and when it is refused as ended.
actor ApsaraKeys: S3KeySource {
    /// The service gives an hour in words and counts 3,000 s (VOD developer guide, "Upload URLs and credentials").
    static let longestLife: Duration = .seconds(3000)
    /// What is left of its life when it is renewed: this, or twice the time of a part where that is more.
    private static let margin: Duration = .seconds(120)
    /// A renewal that failed is not tried again for each part while the old key counts.
    private static let pause: Duration = .seconds(10)
    /// Storage says `AccessDenied` to a right that has ended a moment ago, too.
    private static let lastMoments: Duration = .seconds(60)

    private let clocks: any Clocks
    /// Asks for a new right to the same medium.
    private let renewal: @Sendable (CredentialNews.Reason) async throws -> ApsaraGrant
    private let clock: ServiceClock
    /// Whether a look at what may be whole is worth a new right, which VOD may take for the wish to write over it.
    private let renewsForLooks: Bool
    /// Whether a new right may be asked for before this one is refused: it may be that to another medium.
    private let renewsEarly: Bool
    private let question = JoinedWork()
    private var held: ApsaraGrant
    private var end: MonotonicTime
    private var life: Duration
    /// Counts what was given, so that one refusal of an old key does not throw away a new one.
    private var reading = 0
    private var isRefused = false
    private var failedAt: MonotonicTime?
    /// The right leads elsewhere now: that is final for all parts of the attempt, and asking once more might make one more medium.
    private var hasMoved: UploadError?
    private var longestPart: Duration = .zero

    init(
        _ grant: ApsaraGrant, left: Duration, clocks: any Clocks, clock: ServiceClock, renewsForLooks: Bool = true,
        renewsEarly: Bool = true, renewal: @escaping @Sendable (CredentialNews.Reason) async throws -> ApsaraGrant
    ) {
        self.clocks = clocks
        self.clock = clock
        self.renewsForLooks = renewsForLooks
        self.renewsEarly = renewsEarly
        self.renewal = renewal
        held = grant
        life = left
        end = clocks.monotonic().advanced(by: left)
    }

    /// How long a right counts that was given now. A clock of ours that was never set says nothing of it.
    static func life(of grant: ApsaraGrant, now: WallTime, ahead: Duration) -> Duration {
        guard let end = grant.end else { return longestLife }
        let left = Duration.milliseconds(end.milliseconds - now.advanced(by: ahead).milliseconds)
        return left > .zero ? min(left, longestLife) : longestLife
    }

    func current() async throws -> (key: S3Key, reading: Int) {
        if let hasMoved { throw hasMoved }
        if !isDue { return (held.key, reading) }
        do { try await question.join { try await self.renew() } } catch let error as UploadError {
            if error.failure.code == Self.moved { throw error }
            // One that counts still goes on without it.
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
        // A short life is none that would be spent on renewals.
        let margin = min(max(Self.margin, longestPart * 2), life / 2)
        return now.advanced(by: margin) >= end
    }

    private func renew() async throws {
        // Whoever waited for the one before has what it wanted.
        guard isDue else { return }
        if let hasMoved { throw hasMoved }
        let grant: ApsaraGrant
        do { grant = try await renewal(isRefused ? .refused : .ending) } catch let error as UploadError {
            if error.failure.code == Self.moved { hasMoved = error }
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

    /// Only what means that the right has ended: another refusal would come again, after each renewal.
    func renew(_ key: S3Key, _ reading: Int, after verdict: S3Verdict, isHead: Bool) async -> Bool {
        guard hasEnded(verdict, isHead: isHead) else { return false }
        refused(reading)
        return true
    }

    private func hasEnded(_ verdict: S3Verdict, isHead: Bool) -> Bool {
        if isHead, !renewsForLooks { return false }
        switch verdict.code {
        case let code? where S3Verdict.endsAtOSS.contains(code): return true
        case "AccessDenied", nil:
            guard verdict.isOfKey || isHead && verdict.isMute else { return false }
            return clocks.monotonic().advanced(by: Self.lastMoments) >= end
        default: return false
        }
    }

    func carried(for time: Duration) async { longestPart = max(longestPart, time) }
}
