internal import Core
internal import Linux

// Directories whose events are incomplete: on file systems that others change without this kernel's knowledge, beyond
// the limit on watches, and where the configuration says so.

extension WatchLoop {
    /// Starts polling the directory.
    func poll(_ directory: Directory) {
        let id = ObjectIdentifier(directory)
        guard polled[id] == nil else { return }
        polled[id] = directory
        directory.pollEvery = pace.poll
        schedule(directory)
    }

    func endPolling(_ directory: Directory) {
        guard polled.removeValue(forKey: ObjectIdentifier(directory)) != nil else { return }
        directory.pollAt = nil
        hasNews = true
    }

    /// Polls the directory often for a while, since something happens in it.
    func quicken(_ directory: Directory) {
        directory.isLively = true
        guard polled[ObjectIdentifier(directory)] != nil else { return }
        directory.pollEvery = pace.poll
        if let at = directory.pollAt, at > now.advanced(by: pace.poll) { schedule(directory) }
    }

    /// Reduces the polling after a scan of the directory.
    func slacken(_ directory: Directory) {
        guard polled[ObjectIdentifier(directory)] != nil else { return }
        directory.pollEvery =
            directory.isLively ? pace.poll : min(directory.pollEvery + directory.pollEvery, longestPoll)
        directory.isLively = false
        schedule(directory)
    }

    /// A hundred thousand directories are not all scanned every minute.
    private var longestPoll: Duration {
        max(pace.pollMost, min(.seconds(300), .milliseconds(6) * polled.count))
    }

    private func schedule(_ directory: Directory) {
        let time = now.advanced(by: directory.pollEvery)
        directory.pollAt = time
        polls.add(ObjectIdentifier(directory), at: time)
    }

    /// Requests a visit of each directory whose time has come.
    func visitPolled() {
        while let first = polls.first, first.at <= now {
            polls.removeFirst()
            guard let directory = polled[first.key], directory.pollAt == first.at else { continue }
            directory.pollAt = nil
            enqueue(directory, .poll)
        }
    }
}

/// A duration for people: `2s`, `1m 30s`, `3h`.
func words(_ duration: Duration) -> String {
    let seconds = duration.inMilliseconds / 1000
    if seconds < 1 { return "\(max(0, duration.inMilliseconds))ms" }
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")]
    return parts.filter { $0.0 > 0 }.prefix(2).map { "\($0.0)\($0.1)" }.joined(separator: " ")
}
