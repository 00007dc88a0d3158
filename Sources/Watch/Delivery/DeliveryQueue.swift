internal import Core
internal import Linux

/// Queue of files and reports for the receiver, one delivery at a time.
struct DeliveryQueue {
    /// Files in one delivery; as many settled files wait here at most.
    private let limit: Int
    private var settled: [(place: WatchedFile, file: SettledFile)] = []
    /// Deliveries that go before settled files.
    private var reports = FIFO<Mailbox.Delivery>()
    /// Whether the receiver has not confirmed the last delivery.
    private var isDelivering = false
    /// The number of settled files so far, by folder.
    private var settledCounts: [String: Int] = [:]

    init(limit: Int) { self.limit = limit }

    /// Whether a file or a report has not been confirmed.
    var isBusy: Bool { !settled.isEmpty || !reports.isEmpty || isDelivering }
    /// The number of settled files that may still be added. Where there is none, more may be added when the next
    /// delivery has ended.
    var freeSlots: Int { max(0, limit - settled.count) }
    /// The number of files of a folder that have settled so far.
    func settledCount(of folder: String) -> Int { settledCounts[folder] ?? 0 }

    /// Adds a settled file.
    ///
    /// A file may settle twice before it is delivered, when both a scan and an event reported it. The last counts:
    /// within one delivery, the filter cannot see that the other is known by then.
    mutating func addSettled(_ file: SettledFile, at place: WatchedFile) {
        if let index = settled.firstIndex(where: { $0.place == place }) { settled.remove(at: index) }
        settled.append((place, file))
        settledCounts[file.folder, default: 0] += 1
    }

    /// Adds files of first scans that are to be skipped.
    mutating func addSkipped(_ files: [SettledFile]) {
        for some in files.pieces(of: limit) { reports.append(.skipped(Array(some))) }
    }

    /// Reports that the first scans of folders are over. Folders reported together are recorded together: otherwise,
    /// with a thousand folders, files would wait for a thousand syncs.
    mutating func addScanned(_ folders: [String]) {
        if folders.isEmpty { return }
        if case .scanned(let waiting) = reports.last {
            reports.removeLast()
            reports.append(.scanned(folders: waiting + folders))
        } else {
            reports.append(.scanned(folders: folders))
        }
    }

    /// The next delivery; `nil` while the last is not confirmed, and when there is none.
    mutating func next() -> Mailbox.Delivery? {
        if isDelivering { return nil }
        if let report = reports.popFirst() {
            isDelivering = true
            return report
        }
        if settled.isEmpty { return nil }
        let batch = Array(settled.prefix(limit))
        settled.removeFirst(batch.count)
        isDelivering = true
        return .settled(batch.map(\.file))
    }

    /// The receiver has taken the last delivery.
    mutating func confirm() { isDelivering = false }

    /// Forgets the settled files of a root that were not delivered.
    mutating func drop(_ root: Root) { settled.removeAll { $0.place.directory.root === root } }

    /// Forgets the settled files that are not meant by the predicate.
    mutating func keepSettled(where isKept: (WatchedFile, SettledFile) -> Bool) {
        settled.removeAll { !isKept($0.place, $0.file) }
    }
}
