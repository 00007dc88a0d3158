package import Core

/// How an upload ended, for whoever counts.
package enum UploadEnd: String, Hashable, Sendable, CaseIterable {
    /// Sent, and verified.
    case completed
    /// Not sent, since the same content was there before.
    case duplicate
    case failed
    /// By a person, or since its source became another.
    case cancelled
    /// For its age.
    case expired
}

/// Uploads that have ended since the start, counted where the fact happens: a change that is not committed counts nothing.
struct EndBook {
    struct Key: Hashable {
        let destination: String
        let end: UploadEnd
    }

    /// Of the open transaction.
    var pending: [(key: Key, bytes: Int64, at: WallTime)] = []
    private(set) var sums: [Key: Store.EndSum] = [:]

    mutating func note(_ upload: UploadRecord, _ end: UploadEnd, at now: WallTime) {
        pending.append((Key(destination: upload.destination, end: end), max(0, upload.size), now))
    }

    /// They are committed.
    mutating func settle() {
        for one in pending {
            var sum =
                sums[one.key] ?? Store.EndSum(destination: one.key.destination, end: one.key.end, lastAt: one.at)
            sum.uploads += 1
            sum.bytes = sum.bytes.addingClamped(one.bytes)
            sum.lastAt = one.at
            sums[one.key] = sum
        }
        pending = []
    }
}

extension Store {
    /// What ended at one destination in one way since the start.
    package struct EndSum: Sendable, Hashable {
        package var destination: String
        package var end: UploadEnd
        package var uploads: Int64 = 0
        /// Of their files.
        package var bytes: Int64 = 0
        package var lastAt: WallTime
    }

    package func endSums() -> [EndSum] { Array(ends.sums.values) }

    /// When the oldest upload was made that is not over, by destination: one look into the index for each class and state.
    package func oldestOngoing() throws -> [String: WallTime] {
        var oldest: [String: WallTime] = [:]
        for (one, state) in try classes() where !state.isTerminal {
            let made = try connection.first(
                """
                SELECT created_at FROM upload INDEXED BY upload_class
                WHERE destination = ?1 AND folder = ?2 AND state = ?3 ORDER BY id LIMIT 1
                """, [.text(one.destination), .text(one.folder), .text(state.rawValue)]
            ) { WallTime(milliseconds: $0.integer(0)) }
            guard let made else { continue }
            oldest[one.destination] = min(oldest[one.destination] ?? made, made)
        }
        return oldest
    }
}
