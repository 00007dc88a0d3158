internal import Core

/// Recorded files whose source cannot be copied now, and when each is tried again.
struct CopyDeferrals: Sendable {
    struct Deferral: Sendable {
        var until: MonotonicTime
        var failures: Int
        let exports: Bool
        let folder: String
    }

    private var entries: [Int64: Deferral] = [:]
    /// Whether a file may be copied now that was deferred before.
    private var hasNews = false

    var isEmpty: Bool { entries.isEmpty }
    /// When files are tried again.
    var times: [MonotonicTime] { entries.values.map(\.until) }

    /// The files that are not to be tried yet.
    func waiting(at now: MonotonicTime) -> [Int64] { entries.filter { $0.value.until > now }.map(\.key) }

    /// The files whose time has come.
    func due(at now: MonotonicTime, exports: Bool) -> [Int64] {
        entries.filter { $0.value.exports == exports && $0.value.until <= now }.map(\.key)
    }

    func failures(of asset: Int64) -> Int { entries[asset]?.failures ?? 0 }

    mutating func set(_ deferral: Deferral, of asset: Int64) { entries[asset] = deferral }

    mutating func remove(_ asset: Int64, at now: MonotonicTime) {
        if let entry = entries.removeValue(forKey: asset), entry.until > now { hasNews = true }
    }

    /// Files of these folders are tried at once.
    ///
    /// - Parameter folders: `nil` for all.
    mutating func retry(_ folders: Set<String>? = nil, at now: MonotonicTime) {
        for (id, entry) in entries where entry.until > now && folders?.contains(entry.folder) ?? true {
            entries[id]?.until = now
            hasNews = true
        }
    }

    /// - Returns: Whether to wake the workers.
    mutating func takeWake() -> Bool {
        defer { hasNews = false }
        return hasNews
    }
}
