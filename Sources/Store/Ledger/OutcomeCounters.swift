package import Core

/// How an upload ended, for counting.
package enum UploadEnd: String, Hashable, Sendable, CaseIterable {
    /// Sent, and verified.
    case completed
    /// Not sent, because the same content had been sent before.
    case duplicate
    case failed
    /// By a person, or because its source was replaced.
    case cancelled
    /// Because of its age.
    case expired
    /// Because another destination, which is enough, has the file.
    case superseded
}

/// Uploads that ended at one destination in one way since the start.
package struct EndingCount: Sendable, Hashable {
    package var destination: String
    package var end: UploadEnd
    package var uploads: Int64 = 0
    /// Bytes of their files.
    package var bytes: Int64 = 0
    package var lastAt: WallTime
}

/// Counts of uploads that have ended since the start. They are counted in the transaction that ends them: a change that
/// is not committed counts nothing.
struct OutcomeCounters {
    struct Key: Hashable {
        let destination: String
        let end: UploadEnd
    }

    private(set) var sums: [Key: EndingCount] = [:]

    mutating func note(_ upload: UploadRecord, _ end: UploadEnd, at now: WallTime) {
        let key = Key(destination: upload.destination, end: end)
        var sum = sums[key] ?? EndingCount(destination: key.destination, end: end, lastAt: now)
        sum.uploads += 1
        sum.bytes = sum.bytes.addingClamped(max(0, upload.size))
        sum.lastAt = now
        sums[key] = sum
    }
}
