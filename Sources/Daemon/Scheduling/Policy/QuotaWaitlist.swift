internal import Core
internal import Store

/// The bytes that an upload lacked when it was its turn.
struct QuotaWait: Sendable {
    /// The class whose quotas have to leave `bytes`.
    var kind: QuotaState.Class
    var bytes: Int64
    /// What conditions ask of its file.
    var file = FileAnswers.known([:])
}

/// Uploads that wait until their quotas leave enough for the next piece of their file.
struct QuotaWaitlist: Sendable {
    /// `nil` until the waits of an earlier run were forgotten.
    private var waits: [String: QuotaWait]?
    /// Uploads that waited until a person exempted them from their quotas: in their turn they would only wait again.
    private var exempted: Set<String> = []

    /// Whether the stored waits of an earlier run still have to be forgotten.
    var isOfEarlierRun: Bool { waits == nil }

    /// The waits of an earlier run are forgotten.
    mutating func begin() { waits = [:] }

    var all: [String: QuotaWait] { waits ?? [:] }
    subscript(id: String) -> QuotaWait? { waits?[id] }
    func count(at destination: String) -> Int { all.values.count { $0.kind.destination == destination } }
    /// Whether the upload waited until it was exempted from its quotas.
    func wasExempted(_ id: String) -> Bool { exempted.contains(id) }

    /// Records the end of an attempt.
    ///
    /// - Parameter wait: The quota and amount that the upload lacked; `nil` if no quota stopped it.
    mutating func ended(_ id: String, lacking wait: QuotaWait?) {
        exempted.remove(id)
        waits?[id] = wait
    }

    /// The uploads that may be tried now: enough is left for them, or a person exempted them from their quotas. They
    /// wait no longer.
    ///
    /// - Parameters:
    ///   - most: At most the number that can run now: the bytes that the first of them use are not available to the
    ///     rest.
    ///   - kind: The class of an upload now, which may not be the one it waited in.
    ///   - isFolderExempt: Whether the files of a folder are exempt from quotas.
    ///   - isExempt: Whether an upload is exempt from quotas itself.
    /// - Returns: What each of them waited for, by its id.
    mutating func removeReady(
        _ quotas: QuotaState, most: Int, kind: (String, QuotaWait) -> QuotaState.Class = { $1.kind },
        isFolderExempt: (String) -> Bool, isExempt: (String) -> Bool
    ) -> [String: QuotaWait] {
        let ready = all.filter { id, one in
            (one.kind.folder.map(isFolderExempt) ?? false) || isExempt(id)
                || quotas.remaining(for: kind(id, one)).bytes.map { $0 >= one.bytes } ?? true
        }
        let first = ready.sorted { $0.key < $1.key }.prefix(max(1, most))
        for (id, _) in first {
            waits?[id] = nil
            if isExempt(id) { exempted.insert(id) }
        }
        return Dictionary(first.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }

    /// These uploads wait as before: that their wait is over could not be stored. A wait that was recorded since then
    /// stays.
    mutating func restore(_ removed: [String: QuotaWait]) {
        waits?.merge(removed) { later, _ in later }
        exempted.subtract(removed.keys)
    }
}
