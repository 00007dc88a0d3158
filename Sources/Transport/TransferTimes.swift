/// The last progress of a transfer, and how long it may continue without more.
struct TransferTimes {
    enum Phase { case connecting, sending, answering }

    /// Advanced by the time that the transfer waits for its throttles.
    private var began = ContinuousClock.now
    /// The last progress: connected, a byte sent, a byte received.
    var moved = ContinuousClock.now
    /// The last progress of the request, from which on its answer is awaited: connected, or a byte sent.
    private var requestProgress = ContinuousClock.now

    /// Connected, or a byte was sent.
    mutating func sent() {
        moved = .now
        requestProgress = moved
    }

    /// A waiting transfer continues: no limit ran meanwhile.
    mutating func resumed(waitingSince start: ContinuousClock.Instant?) {
        sent()
        if let start { began = began.advanced(by: start.duration(to: moved)) }
    }

    /// The rest of the limit that ends first, and the error when that is over.
    func left(
        _ limits: Limits, _ phase: Phase, at now: ContinuousClock.Instant
    ) -> (left: Duration, kind: TransportError.Kind, words: String) {
        func left(_ limit: Duration, since start: ContinuousClock.Instant) -> Duration {
            now.duration(to: start.advanced(by: limit))
        }
        var all: [(left: Duration, kind: TransportError.Kind, words: String)] = []
        if let whole = limits.whole {
            all.append((left(whole, since: began), .timedOut, "no complete answer within \(whole)"))
        }
        switch phase {
        case .connecting:
            all.append((left(limits.connect, since: began), .connect, "no connection within \(limits.connect)"))
        case .sending:
            let stall = limits.sendingStall
            all.append((left(stall, since: moved), .stalled, "the peer accepted no byte for \(stall)"))
        case .answering:
            if let answer = limits.answer {
                let words = "no complete answer within \(answer) of the last byte sent"
                all.append((left(answer, since: requestProgress), .timedOut, words))
            }
            all.append((left(limits.replyWait, since: moved), .timedOut, "no answer for \(limits.replyWait)"))
        }
        return all.min { $0.left < $1.left } ?? (.seconds(60), .timedOut, "")
    }
}
