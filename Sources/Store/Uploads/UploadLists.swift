package import Core

/// The filter of a list. Every field that is set must match.
package struct UploadFilter: Sendable, Hashable {
    package var states: [UploadState] = []
    /// Besides `states`, also uploads in a state that a newer program has stored.
    package var includesUnknownStates = false
    package var destination: String?
    package var folder: String?
    /// Only uploads of these classes.
    package var classes: Set<UploadClass>?
    /// Only uploads that wait for a reason of their own: a person paused this one, its last attempt failed, or it is on
    /// standby.
    package var isHeld = false
    /// Only uploads whose file settles again.
    package var isUnsettled = false
    /// Part of the path below the folder.
    package var text: NameSearch?
    /// Pairs that their context must contain.
    package var context: [String: String] = [:]
    /// Only uploads that are older than this id.
    package var after: String?
    /// Only uploads that were added since then, and before `until`.
    package var since: WallTime?
    package var until: WallTime?
    package var limit = 100

    package init() {}

    fileprivate func matches(_ upload: UploadClass) -> Bool {
        (destination.map { $0 == upload.destination } ?? true) && (folder.map { $0 == upload.folder } ?? true)
            && (classes?.contains(upload) ?? true)
    }

    fileprivate func matches(_ upload: UploadRecord) -> Bool {
        matches(upload.uploadClass)
            && matchesState(of: upload) && upload.id < above && upload.id >= floor
            && context.allSatisfy { upload.context[$0.key] == $0.value }
    }

    private func matchesState(of upload: UploadRecord) -> Bool {
        if states.isEmpty { return true }
        return upload.unknown.state == nil ? states.contains(upload.state) : includesUnknownStates
    }

    /// Ids begin with the time.
    fileprivate var above: String { min(after ?? Self.newest, until.map(Self.first) ?? Self.newest) }
    fileprivate var floor: String { since.map(Self.first) ?? "" }
    private static func first(_ time: WallTime) -> String { UploadID(time: time, chance: 0).text }

    fileprivate var namesClasses: Bool { destination != nil || folder != nil || classes != nil }

    /// Sorts after every id: their alphabet ends with Z.
    fileprivate static let newest = "["
}

/// Lists and counts of uploads.
package struct UploadLists<Access> {
    let tx: Transaction<Access>

    /// The ids of ``rows(_:)``, for a filter without a text or a context.
    package func ids(_ filter: UploadFilter) throws -> [String] {
        let range: [Connection.Value] = [.text(filter.above), .integer(Int64(filter.limit)), .text(filter.floor)]
        func ids(_ sql: String, _ values: [Connection.Value] = []) throws -> [String] {
            try tx.connection.all(sql, range + values) { $0.text(0) }
        }
        let unknown = filter.includesUnknownStates ? try unknownStates().map(\.state) : []
        let states = filter.states.map(\.rawValue) + unknown
        var found: [String] = []
        if filter.isHeld {
            found = try held(filter)
        } else if filter.isUnsettled {
            found = try unsettled(filter)
        } else if filter.namesClasses {
            // Each class in each state has its own range of the index, in the order of the ids.
            for (upload, state) in try classesByState() where filter.matches(upload) {
                guard states.isEmpty || states.contains(state) else { continue }
                found += try ids(
                    """
                    SELECT id FROM upload INDEXED BY upload_class
                    WHERE destination = ?4 AND folder = ?5 AND state = ?6 AND mask = ?7 AND id < ?1 AND id >= ?3
                    ORDER BY id DESC LIMIT ?2
                    """,
                    [.text(upload.destination), .text(upload.folder), .text(state), .text(upload.mask.text)])
            }
        } else if states.isEmpty {
            return try ids("SELECT id FROM upload WHERE id < ?1 AND id >= ?3 ORDER BY id DESC LIMIT ?2")
        } else {
            for state in states {
                found += try ids(
                    """
                    SELECT id FROM upload INDEXED BY upload_list
                    WHERE state = ?4 AND id < ?1 AND id >= ?3 ORDER BY id DESC LIMIT ?2
                    """, [.text(state)])
            }
        }
        return Array(found.sorted(by: >).prefix(filter.limit))
    }

    /// The assets whose uploads a filter may match. Uploads are numbered in the order of their assets: the newest asset
    /// has the newest uploads.
    func assetRange(of filter: UploadFilter) throws -> Range<Int64> {
        func asset(_ sql: String, _ id: String) throws -> Int64? {
            try tx.connection.first(sql, [.text(id)]) { $0.integer(0) }
        }
        let newest = try asset("SELECT asset FROM upload WHERE id < ?1 ORDER BY id DESC LIMIT 1", filter.above)
        let oldest = try asset("SELECT asset FROM upload WHERE id >= ?1 ORDER BY id LIMIT 1", filter.floor)
        guard let newest, let oldest, oldest <= newest else { return 0..<0 }
        return oldest..<newest + 1
    }

    /// The newest uploads of these assets that match, at most `most`.
    func rows(_ filter: UploadFilter, ofAssets range: Range<Int64>, most: Int) throws -> [UploadRow] {
        let bounds: [Connection.Value] = [.integer(range.upperBound), .integer(range.lowerBound)]
        let assets =
            if let text = filter.text {
                try tx.connection.query(
                    "SELECT id, relative FROM asset WHERE id < ?1 AND id >= ?2 ORDER BY id DESC", bounds
                ) { row throws(StoreError) in
                    var found: [Int64] = []
                    while try row.next() {
                        if row.withBytes(1, text.matches) { found.append(row.integer(0)) }
                    }
                    return found
                }
            } else {
                try tx.connection.all("SELECT id FROM asset WHERE id < ?1 AND id >= ?2 ORDER BY id DESC", bounds) {
                    $0.integer(0)
                }
            }
        var found: [UploadRow] = []
        for asset in assets where found.count < most {
            for upload in try tx.uploads.of(asset).reversed() where filter.matches(upload) {
                if let row = try tx.uploads.row(upload.id) { found.append(row) }
            }
        }
        return Array(found.prefix(most))
    }

    private func held(_ filter: UploadFilter) throws -> [String] {
        let after = Connection.Value.text(filter.above)
        let paused = try tx.connection.query(
            """
            SELECT \(UploadRecord.columns) FROM upload INDEXED BY upload_paused
            WHERE paused_at IS NOT NULL AND id < ?1 ORDER BY id DESC
            """, [after]
        ) { row throws(StoreError) in
            var found: [String] = []
            while found.count < filter.limit, try row.next() {
                let upload = UploadRecord(row, 0)
                if filter.matches(upload) { found.append(upload.id) }
            }
            return found
        }
        let waiting = try tx.connection.all(
            "SELECT id FROM upload INDEXED BY upload_backoff WHERE backoff_until > ?2 AND backoff_until > 0 AND id < ?1",
            [after, .integer(tx.clocks.monotonic().nanoseconds)]
        ) { $0.text(0) }
        var found = Set(paused)
        let standby = try tx.connection.all(
            """
            SELECT id FROM upload INDEXED BY upload_standby_list WHERE standby > 0 AND state = 'queued' AND id < ?1
            ORDER BY id DESC LIMIT ?2
            """, [after, .integer(Int64(filter.limit))]
        ) { $0.text(0) }
        for id in waiting.sorted(by: >).prefix(filter.limit) + standby {
            if let upload = try tx.uploads.find(id), filter.matches(upload) { found.insert(id) }
        }
        return Array(found)
    }

    private func unsettled(_ filter: UploadFilter) throws -> [String] {
        let assets = try tx.connection.all(
            "SELECT id FROM asset INDEXED BY asset_unsettled WHERE state = 'unsettled' ORDER BY id DESC"
        ) { $0.integer(0) }
        var found: [String] = []
        for asset in assets where found.count < filter.limit {
            found += try tx.uploads.of(asset).filter { filter.matches($0) }.map(\.id).reversed()
        }
        return found
    }

    /// The classes and states that have uploads.
    package func classes() throws -> [(upload: UploadClass, state: UploadState)] {
        try classesByState().compactMap { row in UploadState(rawValue: row.state).map { (row.upload, $0) } }
    }

    private func classesByState() throws -> [(upload: UploadClass, state: String)] {
        try tx.connection.all("SELECT folder, destination, mask, state FROM tally WHERE uploads > 0") { row in
            (UploadClass(folder: row.text(0), destination: row.text(1), mask: FileMask(row.text(2))), row.text(3))
        }
    }

    /// The states that a newer program has stored, each with the number of its uploads.
    package func unknownStates() throws -> [(state: String, uploads: Int)] {
        try tx.connection.all("SELECT state, sum(uploads) FROM tally GROUP BY state HAVING sum(uploads) > 0 ORDER BY 1")
        {
            (state: $0.text(0), uploads: Int($0.integer(1)))
        }.filter { UploadState(rawValue: $0.state) == nil }
    }

    /// Classes with uploads that wait to be sent, also those of folders and destinations that are no longer configured.
    package func waitingClasses() throws -> [(upload: UploadClass, count: Int)] {
        try tx.connection.all(
            "SELECT folder, destination, mask, uploads FROM tally WHERE state = 'queued' AND uploads > 0 ORDER BY 1, 2, 3"
        ) { row in
            (
                UploadClass(folder: row.text(0), destination: row.text(1), mask: FileMask(row.text(2))),
                Int(row.integer(3))
            )
        }
    }

    /// Classes with a queued upload that is not paused and waits for no next attempt.
    ///
    /// - Parameter passed: None of these; few.
    package func readyClasses(besides passed: Set<String> = []) throws -> [UploadClass] {
        let now = tx.clocks.monotonic().nanoseconds
        return try classes(waitingAfter: .min, atMost: now, besides: passed)
    }

    /// Classes with a queued upload that is not paused, and whose wait for its next attempt ends within `time`.
    ///
    /// - Parameter passed: None of these; few.
    package func classes(readyWithin time: Duration, besides passed: Set<String>) throws -> [UploadClass] {
        let now = tx.clocks.monotonic()
        return try classes(
            waitingAfter: now.nanoseconds, atMost: now.advanced(by: time).nanoseconds, besides: passed)
    }

    /// - Parameters:
    ///   - earliest: The wait ends after this time, in boot-time ns.
    ///   - latest: It ends by this time.
    private func classes(
        waitingAfter earliest: Int64, atMost latest: Int64, besides passed: Set<String>
    ) throws -> [UploadClass] {
        let ids = TextMap.text(Dictionary(passed.map { ($0, "") }, uniquingKeysWith: { first, _ in first }))
        return try waitingClasses().map(\.upload).filter { upload in
            try tx.connection.first(
                """
                SELECT 1 FROM upload INDEXED BY upload_next WHERE destination = ?1 AND folder = ?2 AND mask = ?3
                AND state = 'queued' AND paused_at IS NULL AND standby = 0 AND backoff_until > ?4 AND backoff_until <= ?5
                AND id NOT IN (SELECT key FROM json_each(?6)) LIMIT 1
                """,
                [
                    .text(upload.destination), .text(upload.folder), .text(upload.mask.text), .integer(earliest),
                    .integer(latest), .text(ids),
                ]
            ) { $0.integer(0) } != nil
        }
    }

    /// - Parameters:
    ///   - folder: Only its uploads.
    ///   - destination: Only uploads to it.
    package func tallies(folder: String? = nil, destination: String? = nil) throws -> [Tally] {
        try tx.connection.all(
            """
            SELECT folder, destination, state, sum(uploads), sum(bytes) FROM tally
            WHERE (?1 IS NULL OR folder = ?1) AND (?2 IS NULL OR destination = ?2) GROUP BY 1, 2, 3 ORDER BY 1, 2
            """, [.init(folder), .init(destination)]
        ) { row in
            UploadState(rawValue: row.text(2)).map {
                Tally(
                    folder: row.text(0), destination: row.text(1), state: $0, uploads: Int(row.integer(3)),
                    bytes: row.integer(4))
            }
        }.compactMap { $0 }
    }

    /// The creation time of the oldest unfinished upload, by destination: one index look-up for each class and state.
    package func oldestOngoing() throws -> [String: WallTime] {
        var oldest: [String: WallTime] = [:]
        for (one, state) in try classes() where !state.isTerminal {
            let made = try tx.connection.first(
                """
                SELECT created_at FROM upload INDEXED BY upload_class
                WHERE destination = ?1 AND folder = ?2 AND state = ?3 AND mask = ?4 ORDER BY id LIMIT 1
                """,
                [.text(one.destination), .text(one.folder), .text(state.rawValue), .text(one.mask.text)]
            ) { WallTime(milliseconds: $0.integer(0)) }
            guard let made else { continue }
            oldest[one.destination] = min(oldest[one.destination] ?? made, made)
        }
        return oldest
    }

    /// The waiting uploads of one class that are too old, and the time when the next one will be.
    ///
    /// The oldest are checked: an upload that was made before another has the lower id. An upload that a person began
    /// again does not get too old.
    ///
    /// - Parameters:
    ///   - oldest: No correct clock shows an earlier time.
    ///   - most: Limit of the answer; if there are fewer, these are all.
    package func expiredUploads(
        _ upload: UploadClass, by expiry: Expiry, oldest: WallTime, most: Int
    ) throws -> (ids: [String], next: WallTime?) {
        let (now, run) = (tx.clocks.wall(), tx.clocks.monotonic().since(tx.session.openedAt))
        var ids: [String] = []
        var times: [WallTime] = []
        for state in [UploadState.queued, .staging] {
            let rows = try tx.connection.all(
                """
                SELECT id, created_at FROM upload INDEXED BY upload_class
                WHERE destination = ?1 AND folder = ?2 AND state = ?3 AND mask = ?4 AND generation = 1
                ORDER BY id LIMIT ?5
                """,
                [
                    .text(upload.destination), .text(upload.folder), .text(state.rawValue), .text(upload.mask.text),
                    .integer(Int64(most - ids.count)),
                ]
            ) { (id: $0.text(0), found: WallTime(milliseconds: $0.integer(1))) }
            for row in rows {
                let due = expiry.due(
                    found: row.found, isOfRun: row.id > tx.session.lastOfEarlierRuns || row.found < oldest, now: now,
                    run: run)
                if due <= now { ids.append(row.id) } else { times.append(due) }
            }
        }
        return (ids, times.min())
    }

    /// The uploads that must leave a list, the oldest first.
    ///
    /// A cancelled upload stays until its remains at the destination are removed.
    ///
    /// - Returns: Also when the next one is due, measured from now; `nil` when there is none.
    package func uploadsToDismiss(
        _ list: UploadState, by limits: ListRetention.Limits, most: Int
    ) throws -> (ids: [(id: String, reason: RemovalReason)], next: Duration?) {
        let ran = tx.session.currentRunTime
        let surplus = try count(list) - (limits.most ?? .max)
        guard surplus > 0 || limits.time != nil else { return ([], nil) }
        var ids: [(id: String, reason: RemovalReason)] = []
        var next: Duration?
        let waiting = list == .cancelled ? "AND remote_delete IS NOT 'pending'" : ""
        try tx.connection.query(
            """
            SELECT id, ran_at FROM upload INDEXED BY upload_age
            WHERE state = ?1 AND ran_at IS NOT NULL \(waiting) ORDER BY ran_at, id
            """, [.text(list.rawValue)]
        ) { row throws(StoreError) in
            while ids.count < most, try row.next() {
                let age = Duration.milliseconds(max(0, ran - row.integer(1)))
                if let time = limits.time, age >= time {
                    ids.append((row.text(0), .expired))
                } else if ids.count < surplus {
                    ids.append((row.text(0), .capped))
                } else {
                    next = limits.time.map { $0 - age }
                    return
                }
            }
        }
        return (ids, next)
    }

    private func count(_ state: UploadState) throws -> Int {
        try tx.connection.first("SELECT sum(uploads) FROM tally WHERE state = ?1", [.text(state.rawValue)]) {
            Int($0.integer(0))
        } ?? 0
    }
}

extension Transaction {
    package var lists: UploadLists<Access> { UploadLists(tx: self) }
}
