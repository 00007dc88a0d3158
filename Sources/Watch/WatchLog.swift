internal import Core
internal import Linux

/// The log of a watching thread. A value without state, which all of its components share.
struct WatchLog {
    /// Time until a folder whose disk fails is checked again.
    let retry: Duration
    let write: (WatchLogEntry) -> Void

    func info(_ text: String) { write(WatchLogEntry(.info, text)) }
    func notice(_ text: String) { write(WatchLogEntry(.notice, text)) }
    func warning(_ text: String) { write(WatchLogEntry(.warning, text)) }

    /// Reports that something below a root cannot be examined. A disk that was pulled out fails for each file on it:
    /// that is reported once.
    func notice(_ error: SystemError, below root: Root, at now: MonotonicTime, _ text: String) {
        guard error.isOfDisk else { return notice(text) }
        guard root.state.diskFailed(again: now.advanced(by: retry)) else { return }
        notice("the disk of folder \(root.path.display) fails (\(error)); its files wait until it works again")
    }
}
