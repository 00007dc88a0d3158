internal import Core

/// The transfer rate to one destination, over the last minutes with traffic.
struct TransferRate {
    private var bytes: Int64 = 0
    private var seconds = 0.0
    private var last: MonotonicTime?

    /// - Parameter count: Negative where bytes are sent again.
    mutating func sent(_ count: Int64, at now: MonotonicTime) {
        defer { last = now }
        // The first bytes after a silence: how long they took is unknown.
        guard let last, now.since(last) < .seconds(3) else { return }
        bytes += max(0, count)
        seconds += now.since(last).inSeconds
        if seconds > 240 {
            bytes /= 2
            seconds /= 2
        }
    }

    /// In bytes a second; `nil` before enough was sent.
    var rate: Int64? {
        // On a fast line, a small quota allows only a short measurement, and it is enough.
        guard bytes > 0, seconds >= 1 || (seconds >= 0.02 && bytes >= 1 << 20) else { return nil }
        return max(1, Int64(Double(bytes) / seconds))
    }
}
