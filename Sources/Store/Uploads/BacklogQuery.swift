package import Core

/// The waiting uploads of one class.
package struct ClassBacklog: Sendable, Hashable {
    package struct Upload: Sendable, Hashable {
        package var id: String
        package var size: Int64
        /// Bytes that the remote has, as far as is known without asking it.
        package var sent: Int64
        package var priority: Int
        package var isRunning: Bool
        package var isBegun: Bool
    }

    package var one: UploadClass
    package var folder: String { one.folder }
    package var destination: String { one.destination }
    /// The running uploads, and the first of the waiting ones, in the order in which they are claimed.
    package var first: [Upload] = []
    /// All other waiting uploads.
    package var rest = Spending.none
    /// Uploads that have no copy yet.
    package var unstaged = Spending.none
    /// Uploads that were paused one by one; counted nowhere else.
    package var paused = Spending.none
    /// Uploads that go only if another destination does not have the file in time; counted nowhere else.
    package var standby = Standby.none
}

/// Waiting uploads, for plans.
package struct BacklogQuery<Access> {
    let tx: Transaction<Access>

    /// All waiting uploads, by class. Of each the first uploads are read. The others are counted
    /// by the tally, so that a million cost no more than those that are read.
    ///
    /// - Parameter limit: Uploads to read in all; each class gets a share of it, and a hundred at least.
    package func classes(reading limit: Int = 10_000) throws -> [ClassBacklog] {
        let tally = try tx.connection.all(
            """
            SELECT folder, destination, mask, state, uploads, bytes FROM tally
            WHERE uploads > 0 AND state IN ('staging', 'queued', 'uploading') ORDER BY destination, folder, mask
            """
        ) {
            (
                one: UploadClass(folder: $0.text(0), destination: $0.text(1), mask: FileMask($0.text(2))),
                state: $0.text(3), sum: Spending(bytes: $0.integer(5), files: $0.integer(4))
            )
        }
        var classes: [ClassBacklog] = []
        for row in tally {
            if classes.last?.one != row.one { classes.append(ClassBacklog(one: row.one)) }
            let last = classes.count - 1
            switch row.state {
            case "staging": classes[last].unstaged = row.sum
            case "queued": classes[last].rest = row.sum
            default: classes[last].first = try running(row.one)
            }
        }
        for paused in try pausedOneByOne() {
            guard let number = classes.firstIndex(where: { $0.one == paused.one }) else { continue }
            classes[number].paused += paused.sum
            if paused.state == "staging" {
                classes[number].unstaged = classes[number].unstaged.without(paused.sum)
            } else {
                classes[number].rest = classes[number].rest.without(paused.sum)
            }
        }
        let (staged, toStage) = (try tx.alternatives.standby(), try tx.alternatives.standby(.staging))
        for number in classes.indices {
            let parts = (staged[classes[number].one], toStage[classes[number].one])
            guard let wait = [parts.0, parts.1].compactMap({ $0?.wait }).min() else { continue }
            let (ready, later) = (parts.0?.uploads ?? .none, parts.1?.uploads ?? .none)
            classes[number].standby = Standby(uploads: ready + later, wait: wait)
            classes[number].rest = classes[number].rest.without(ready)
            classes[number].unstaged = classes[number].unstaged.without(later)
        }
        let share = max(100, limit / max(1, classes.count))
        for number in classes.indices where classes[number].rest.files > 0 {
            let next = try queued(classes[number].one, share)
            let read = next.reduce(into: Spending.none) { $0 += Spending(bytes: $1.size, files: 1) }
            classes[number].first += next
            classes[number].rest = classes[number].rest.without(read)
        }
        return classes
    }

    private func running(_ one: UploadClass) throws -> [ClassBacklog.Upload] {
        try tx.connection.all(
            """
            SELECT id, size, \(UploadRecord.reach), rank, \(UploadRecord.isBegun) FROM upload INDEXED BY upload_class
            WHERE destination = ?1 AND folder = ?2 AND state = 'uploading' AND mask = ?3 ORDER BY id
            """, [.text(one.destination), .text(one.folder), .text(one.mask.text)]
        ) { ClassBacklog.Upload($0, isRunning: true) }
    }

    private func queued(_ one: UploadClass, _ limit: Int) throws -> [ClassBacklog.Upload] {
        try tx.connection.all(
            """
            SELECT id, size, \(UploadRecord.reach), rank, \(UploadRecord.isBegun) FROM upload INDEXED BY upload_next
            WHERE destination = ?1 AND folder = ?2 AND mask = ?3 AND state = 'queued' AND paused_at IS NULL
            AND standby = 0 ORDER BY rank, sort, id LIMIT ?4
            """, [.text(one.destination), .text(one.folder), .text(one.mask.text), .integer(Int64(limit))]
        ) { ClassBacklog.Upload($0, isRunning: false) }
    }

    private func pausedOneByOne() throws -> [(one: UploadClass, state: String, sum: Spending)] {
        try tx.connection.all(
            """
            SELECT folder, destination, mask, state, count(*), CAST(total(size) AS INTEGER)
            FROM upload INDEXED BY upload_paused WHERE paused_at IS NOT NULL AND state IN ('staging', 'queued')
            GROUP BY folder, destination, mask, state
            """
        ) {
            (
                UploadClass(folder: $0.text(0), destination: $0.text(1), mask: FileMask($0.text(2))), $0.text(3),
                Spending(bytes: $0.integer(5), files: $0.integer(4))
            )
        }
    }

    /// Sent bytes of begun uploads that do not run. Reads only the begun uploads, which are few.
    package func bytesBegun() throws -> Int64 {
        try tx.connection.first(
            """
            SELECT CAST(total(min(size, max(\(UploadRecord.reach), 0))) AS INTEGER)
            FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload WHERE state = 'queued'
            """
        ) { $0.integer(0) } ?? 0
    }

    /// The number of begun uploads of a class that wait.
    package func begun(_ one: UploadClass) throws -> Int {
        try tx.connection.first(
            """
            SELECT count(*) FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload
            WHERE state = 'queued' AND folder = ?1 AND destination = ?2 AND mask = ?3
            """, [.text(one.folder), .text(one.destination), .text(one.mask.text)]
        ) { Int($0.integer(0)) } ?? 0
    }
}

extension Transaction {
    package var backlog: BacklogQuery<Access> { BacklogQuery(tx: self) }
}

extension ClassBacklog.Upload {
    fileprivate init(_ row: Connection.Row, isRunning: Bool) {
        self.init(
            id: row.text(0), size: max(0, row.integer(1)), sent: max(0, row.integer(2)),
            // A damaged number must not trap.
            priority: Int(-max(row.integer(3), -.max)), isRunning: isRunning, isBegun: row.integer(4) == 1)
    }
}

extension Spending {
    fileprivate func without(_ other: Spending) -> Spending {
        Spending(bytes: max(0, bytes - other.bytes), files: max(0, files - other.files))
    }
}
