internal import Core

/// Metrics in the format of Prometheus: text format 0.0.4.
package enum MetricsText {
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Metrics sorted by name, and the values of each by label, so that a person can compare two answers.
    package static func bytes(_ view: MetricsView) -> [UInt8] {
        var out = ""
        for (metric, numbers) in view.numbers.sorted(by: { $0.key.name < $1.key.name }) where !numbers.isEmpty {
            out += "# HELP \(metric.name) \(escaped(metric.help, quotes: false))\n"
            out += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for (values, number) in numbers.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                let labels = zip(metric.labels, values).map { "\($0)=\"\(escaped($1, quotes: true))\"" }
                switch number {
                case .whole(let number): line(&out, metric.name, labels, "\(number)")
                case .real(let number): line(&out, metric.name, labels, text(number))
                case .spread(let histogram): lines(&out, metric.name, labels, histogram)
                }
            }
        }
        return Array(out.utf8)
    }

    /// Each bucket includes the counts of the smaller ones.
    private static func lines(_ out: inout String, _ name: String, _ labels: [String], _ histogram: Histogram) {
        var count: Int64 = 0
        for (bound, more) in zip(Histogram.bounds + [.infinity], histogram.counts) {
            count += more
            line(&out, name + "_bucket", labels + ["le=\"\(text(bound))\""], "\(count)")
        }
        line(&out, name + "_sum", labels, text(histogram.sum))
        line(&out, name + "_count", labels, "\(count)")
    }

    private static func line(_ out: inout String, _ name: String, _ labels: [String], _ number: String) {
        out += name + (labels.isEmpty ? "" : "{" + labels.joined(separator: ",") + "}") + " " + number + "\n"
    }

    private static func text(_ number: Double) -> String {
        if number.isNaN { return "NaN" }
        if number.isInfinite { return number > 0 ? "+Inf" : "-Inf" }
        return "\(number)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\"" where quotes: out += "\\\""
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
