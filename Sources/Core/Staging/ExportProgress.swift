/// The progress of a command, read from its output: ffmpeg's `-progress` lines, or a percentage.
///
/// Keys and values of `-progress` are those of FFmpeg's fftools/ffmpeg.c: `out_time_us=1234` in microseconds,
/// `progress=end` at the end. The length of the source is in its messages on standard error as `Duration:
/// 00:01:02.50,`.
package struct ExportProgress: Hashable, Sendable {
    /// 0...1; `nil` while it is unknown.
    package private(set) var fraction: Double?
    /// Seconds of the source that are done, where the command prints a time.
    package private(set) var seconds: Double?
    /// Total seconds of the source.
    package private(set) var length: Double?

    package init() {}

    /// Reads a line of either kind; any other line changes nothing.
    package mutating func parse(_ line: String) {
        let text = line.drop { $0 == " " }
        if let value = Self.value(of: "out_time_us=", text) ?? Self.value(of: "out_time_ms=", text) {
            // The second key is in microseconds too, in spite of its name; both are `N/A` in the beginning.
            guard let microseconds = Double(value), microseconds.isFinite, microseconds >= 0 else { return }
            seconds = microseconds / 1_000_000
        } else if text.hasPrefix("progress=end") {
            fraction = 1
            return
        } else if let value = Self.value(of: "Duration: ", text) {
            // The first duration is that of the first input.
            if length == nil { length = Self.time(value.prefix { $0 != "," }) }
        } else if let percent = Self.percent(in: line) {
            fraction = min(max(percent / 100, 0), 1)
            return
        }
        if let seconds, let length, length > 0 { fraction = min(seconds / length, 1) }
    }

    private static func value(of key: String, _ line: Substring) -> Substring? {
        line.hasPrefix(key) ? line.dropFirst(key.count) : nil
    }

    /// `00:01:02.50` in seconds.
    private static func time(_ text: Substring) -> Double? {
        let parts = text.split(separator: ":").compactMap { Double($0) }
        guard parts.count == 3, parts.allSatisfy({ $0.isFinite && $0 >= 0 }) else { return nil }
        return parts[0] * 3600 + parts[1] * 60 + parts[2]
    }

    /// The last number that is followed by a `%`.
    private static func percent(in line: String) -> Double? {
        guard let sign = line.lastIndex(of: "%") else { return nil }
        let before = line[..<sign].reversed().drop { $0 == " " }
        let digits = before.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        return Double(String(digits.reversed()))
    }
}
