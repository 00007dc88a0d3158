internal import Core

/// One requirement of the design: a figure of Sluice, compared with a peer or a bound in one run.
struct Mark: Sendable {
    /// `module/subject`, as for a ``Benchmark``.
    let name: String
    /// The measured work, for the reader of the output.
    let what: String
    /// Throws ``Absent`` when something that it needs is not on this machine.
    let measure: @Sendable (Bench) async throws -> [Finding]
}

/// A result.
struct Finding: Sendable, CustomStringConvertible {
    enum Verdict: String, Sendable { case met, missed, noted = "-" }

    let what: String
    let figure: String
    /// The requirement of design.md; empty for a figure that is only reported.
    let mark: String
    let verdict: Verdict

    /// A ratio to a peer's figure that must stay at or below `most`.
    static func ratio(_ what: String, _ ours: Double, to theirs: Double, most: Double, _ detail: String = "") -> Finding
    {
        let ratio = ours / theirs
        return Finding(
            what: what, figure: "\(shown(ratio)) x" + (detail.isEmpty ? "" : " (\(detail))"),
            mark: "<= \(shown(most)) x",
            verdict: ratio <= most ? .met : .missed)
    }

    /// A rate that must reach `least` times a peer's.
    static func speed(_ what: String, _ ours: Double, to theirs: Double, least: Double, _ detail: String = "")
        -> Finding
    {
        let ratio = ours / theirs
        return Finding(
            what: what, figure: "\(shown(ratio)) x" + (detail.isEmpty ? "" : " (\(detail))"),
            mark: ">= \(shown(least)) x", verdict: ratio >= least ? .met : .missed)
    }

    static func bound(_ what: String, _ value: Double, _ unit: String, most: Double) -> Finding {
        Finding(
            what: what, figure: "\(shown(value)) \(unit)", mark: "<= \(shown(most)) \(unit)",
            verdict: value <= most ? .met : .missed)
    }

    static func note(_ what: String, _ figure: String) -> Finding {
        Finding(what: what, figure: figure, mark: "", verdict: .noted)
    }

    var description: String { [what, figure, mark, verdict.rawValue].joined(separator: "\t") }
}

/// Thrown when something that a measurement needs is missing; `remedy` says how to get it.
struct Absent: Error, CustomStringConvertible {
    let what: String
    let remedy: String
    var description: String { "skipped: no \(what); \(remedy)" }
}

func shown(_ number: Double) -> String {
    let digits = number >= 100 ? 0 : number >= 10 ? 1 : 2
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let whole = Int((number * scale).rounded())
    guard digits > 0 else { return "\(whole)" }
    return "\(whole / Int(scale))." + padded(whole % Int(scale), digits)
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    return sorted.count % 2 == 1
        ? sorted[sorted.count / 2] : (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
}
