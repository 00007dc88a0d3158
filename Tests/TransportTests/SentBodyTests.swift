import Linux
import TestKit
import Testing

@testable import Transport

@Suite("The sent bytes of a body")
struct SentBodyTests {
    private static func counts(queued: Int64, unsent: Int64 = 0, isOver: Bool = false) -> SocketCounts {
        SocketCounts(
            sent: 0, received: 0, segments: 0, unsent: unsent, queued: queued, unanswered: 0, largest: 1000, header: 52,
            isOver: isOver)
    }

    private static func body(at position: Int64) -> SentBody {
        var body = SentBody()
        _ = body.progressed(to: position)
        return body
    }

    @Test("bytes that have left still count when libcurl starts again")
    func restart() {
        var body = Self.body(at: 5000)
        var moves: [Bool] = []
        for position: Int64 in [5000, 0, 700] {
            moves.append(body.progressed(to: position))
            #expect(body.sent == position && body.maxSent == 5000)
        }
        #expect(moves == [false, true, true])
    }

    @Test("without counters of the kernel the peer may have nothing, and everything that was fetched")
    func noCounters() {
        #expect(SentBody().delivered(given: 0) == 0...0)
        #expect(Self.body(at: 5000).delivered(given: 9000) == 0...9000)
        #expect(Self.body(at: 5000).delivered(given: 100) == 0...5000)
    }

    @Test("acknowledged bytes have arrived, and those that never left have not")
    func kept() {
        var body = Self.body(at: 10_000)
        body.observe(Self.counts(queued: 6000, unsent: 4000), isSecure: false, at: nil)
        #expect(body.delivered(given: 20_000) == 4000...10_000)
        body.observe(Self.counts(queued: 6000, unsent: 4000, isOver: true), isSecure: false, at: nil)
        #expect(body.delivered(given: 20_000) == 4000...6000)
        // Three segments may still leave.
        body.observe(Self.counts(queued: 6000, unsent: 4000), isSecure: false, at: .reset)
        #expect(body.delivered(given: 20_000) == 4000...9000)
        body.observe(Self.counts(queued: 6000, unsent: 2000), isSecure: false, at: .reset)
        #expect(body.delivered(given: 20_000) == 4000...10_000)
    }

    @Test("with encryption all bytes that were fetched may have arrived")
    func encrypted() {
        var body = Self.body(at: 10_000)
        body.observe(Self.counts(queued: 6000, unsent: 4000, isOver: true), isSecure: true, at: nil)
        #expect(body.delivered(given: 20_000) == 4000...20_000)
        #expect(body.delivered(given: 0) == 4000...10_000)
    }

    @Test("an acknowledgement is not taken back by a restart or by a later reading")
    func acknowledged() {
        var body = Self.body(at: 10_000)
        body.observe(Self.counts(queued: 2000), isSecure: false, at: nil)
        _ = body.progressed(to: 0)
        body.observe(Self.counts(queued: 9000), isSecure: false, at: nil)
        #expect(body.delivered(given: 10_000) == 8000...10_000)
    }

    /// A connection without encryption, whose peer has received what has left the buffer, up to some bytes in flight.
    @Test("the bounds hold for each connection, and the lower one never falls", arguments: 0..<200)
    func bounds(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var body = SentBody()
        var (unsent, inFlight, received): (Int64, Int64, Int64) = (0, 0, 0)
        var least: Int64 = 0
        for _ in 0..<100 {
            switch Int.random(in: 0..<3, using: &dice) {
            case 0:
                let more = Int64.random(in: 0...5000, using: &dice)
                unsent += more
                _ = body.progressed(to: body.maxSent + more)
            case 1:
                let more = Int64.random(in: 0...unsent, using: &dice)
                (unsent, inFlight) = (unsent - more, inFlight + more)
                received += Int64.random(in: 0...(body.maxSent - unsent - received), using: &dice)
            default:
                // The peer has received at least the acknowledged bytes.
                inFlight = Int64.random(in: (body.maxSent - unsent - received)...inFlight, using: &dice)
            }
            body.observe(
                Self.counts(queued: unsent + inFlight, unsent: unsent), isSecure: false,
                at: Bool.random(using: &dice) ? .reset : nil)
            let bounds = body.delivered(given: body.maxSent)
            #expect(bounds.contains(received), "seed \(seed)")
            #expect(bounds.lowerBound >= least, "seed \(seed)")
            #expect(bounds.upperBound <= body.maxSent, "seed \(seed)")
            least = bounds.lowerBound
        }
    }
}
