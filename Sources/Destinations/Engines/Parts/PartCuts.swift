internal import Core

/// Parts that the connection cut, in attempts in a row without an accepted part: they may be too large for the path.
struct PartCuts: Sendable {
    /// Number of attempts.
    let times: Int64
    /// Bytes of the part.
    let size: Int64

    /// Records another cut.
    init(_ part: PartPlan.Part, in checkpoint: inout PartsCheckpoint) {
        if checkpoint.cutSize != part.length { checkpoint.cuts = nil }
        checkpoint.cutSize = part.length
        times = checkpoint.increment(\.cuts)
        size = part.length
    }

    /// Whether a part was cut: a connection that ends earlier says nothing about the size.
    static func isCut(_ part: PartPlan.Part, _ sending: PartSendResult) -> Bool {
        sending.isUnanswered && part.length > 0 && sending.bytesSent >= min(1 << 20, part.length / 2)
    }

    static func isSuspected(_ checkpoint: PartsCheckpoint) -> Bool { checkpoint.cuts ?? 0 > 0 }

    static func end(in checkpoint: inout PartsCheckpoint) {
        checkpoint.cuts = nil
        checkpoint.cutSize = nil
    }

    /// Whether the destination is to use smaller parts, as for ``ChunkSize``. The first cut may be an accident.
    var shouldShrinkParts: Bool { times % 2 == 0 }

    /// The possible cause, for a person.
    func hint(_ key: String?) -> String {
        guard times >= 3 else { return "" }
        let remedy = key.map { "; a smaller `\($0)` may help" } ?? ""
        return
            "; requests of \(size) bytes were cut \(times) times in a row: the network or a proxy may not take that size"
            + remedy
    }
}
