internal import Core

/// A duration for people: `2s`, `1m 30s`, `3h`.
func words(_ duration: Duration) -> String {
    let seconds = duration.inMilliseconds / 1000
    if seconds < 1 { return "\(max(0, duration.inMilliseconds))ms" }
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")]
    return parts.filter { $0.0 > 0 }.prefix(2).map { "\($0.0)\($0.1)" }.joined(separator: " ")
}
