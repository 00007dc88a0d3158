internal import Core

/// How fast bytes went, over the last minutes in which any did.
struct Speed {
    private var bytes: Int64 = 0
    private var seconds = 0.0
    private var last: MonotonicTime?

    /// - Parameter count: Below 0 where something is sent again.
    mutating func sent(_ count: Int64, at now: MonotonicTime) {
        defer { last = now }
        // The first after a silence: nobody knows how long it took.
        guard let last, now.since(last) < .seconds(3) else { return }
        bytes += max(0, count)
        seconds += now.since(last).inSeconds
        if seconds > 240 {
            bytes /= 2
            seconds /= 2
        }
    }

    /// Bytes a second; `nil` before enough of it was seen.
    var rate: Int64? {
        // Of a fast line little is seen under a small quota, and it is enough.
        guard bytes > 0, seconds >= 1 || (seconds >= 0.02 && bytes >= 1 << 20) else { return nil }
        return max(1, Int64(Double(bytes) / seconds))
    }
}
