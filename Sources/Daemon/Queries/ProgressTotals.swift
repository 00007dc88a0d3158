internal import Synchronization

/// Totals for the progress display. They only grow while there is work: a batch begins when the first upload becomes
/// ongoing on an idle daemon, and ends when no upload is ongoing.
final class ProgressTotals: Sendable {
    struct Figures: Sendable, Hashable {
        var filesTotal = 0
        var filesDone = 0
        var bytesTotal: Int64 = 0
        var bytesDone: Int64 = 0
    }

    /// The completed files and bytes when the batch began; `nil` while idle.
    private let start = Mutex<(files: Int, bytes: Int64)?>(nil)

    /// - Parameters: Counters of the store, from which the totals are derived.
    func figures(ongoing: Int, ongoingBytes: Int64, completed: Int, completedBytes: Int64) -> Figures {
        start.withLock { start in
            if ongoing == 0 { start = nil }
            guard ongoing > 0 else { return Figures() }
            let begin = start ?? (completed, completedBytes)
            start = begin
            let done = max(0, completed - begin.files)
            let bytes = max(0, completedBytes - begin.bytes)
            return Figures(
                filesTotal: done + ongoing, filesDone: done, bytesTotal: bytes + ongoingBytes, bytesDone: bytes)
        }
    }
}
