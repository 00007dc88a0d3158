package import Core

// Lists: the newest uploads that match a filter, a page at a time.

extension Store {
    /// The filter of a list. Every field that is set must match.
    package struct Filter: Sendable, Hashable {
        package var states: [UploadState] = []
        package var destination: String?
        package var folder: String?
        /// Only uploads of these classes.
        package var classes: Set<UploadClass>?
        /// Only uploads that wait for a reason of their own: a person paused this one, or its last attempt failed.
        package var isHeld = false
        /// Only uploads whose file settles again.
        package var isUnsettled = false
        /// Part of the path, as bytes.
        package var text: FilePath?
        /// Pairs that their context must contain.
        package var context: [String: String] = [:]
        /// Only uploads that are older than this id.
        package var after: String?
        /// Only uploads that were added since then, and before `until`.
        package var since: WallTime?
        package var until: WallTime?
        package var limit = 100

        package init() {}

        fileprivate func takes(_ upload: UploadClass) -> Bool {
            (destination.map { $0 == upload.destination } ?? true) && (folder.map { $0 == upload.folder } ?? true)
                && (classes?.contains(upload) ?? true)
        }

        fileprivate func takes(_ upload: UploadRecord) -> Bool {
            takes(UploadClass(folder: upload.folder, destination: upload.destination))
                && (states.isEmpty || states.contains(upload.state)) && upload.id < above && upload.id >= floor
                && context.allSatisfy { upload.context[$0.key] == $0.value }
        }

        /// Ids begin with the time.
        fileprivate var above: String { min(after ?? Self.newest, until.map(Self.first) ?? Self.newest) }
        fileprivate var floor: String { since.map(Self.first) ?? "" }
        private static func first(_ time: WallTime) -> String { UploadID(time: time, chance: 0).text }

        fileprivate var namesClasses: Bool { destination != nil || folder != nil || classes != nil }

        /// Sorts after every id: their alphabet ends with Z.
        fileprivate static let newest = "["
    }

    /// Newest first.
    ///
    /// A text or a context is searched in all files, a piece at a time, and other callers get their turn in between.
    package func rows(_ filter: Filter) async throws -> [UploadRow] {
        if filter.text != nil || !filter.context.isEmpty { return try await search(filter) }
        return try ids(filter).compactMap { try row($0) }
    }

    /// The ids of ``rows(_:)``, for a filter without a text or a context.
    package func ids(_ filter: Filter) throws -> [String] {
        let range: [Connection.Value] = [.text(filter.above), .integer(Int64(filter.limit)), .text(filter.floor)]
        func ids(_ sql: String, _ values: [Connection.Value] = []) throws -> [String] {
            try connection.all(sql, range + values) { $0.text(0) }
        }
        var found: [String] = []
        if filter.isHeld {
            found = try held(filter)
        } else if filter.isUnsettled {
            found = try unsettled(filter)
        } else if filter.namesClasses {
            // Each class in each state has its own range of the index, in the order of the ids.
            for (upload, state) in try classes() where filter.takes(upload) {
                guard filter.states.isEmpty || filter.states.contains(state) else { continue }
                found += try ids(
                    """
                    SELECT id FROM upload INDEXED BY upload_class
                    WHERE destination = ?4 AND folder = ?5 AND state = ?6 AND id < ?1 AND id >= ?3 ORDER BY id DESC LIMIT ?2
                    """, [.text(upload.destination), .text(upload.folder), .text(state.rawValue)])
            }
        } else if filter.states.isEmpty {
            return try ids("SELECT id FROM upload WHERE id < ?1 AND id >= ?3 ORDER BY id DESC LIMIT ?2")
        } else {
            for state in filter.states {
                found += try ids(
                    """
                    SELECT id FROM upload INDEXED BY upload_list
                    WHERE state = ?4 AND id < ?1 AND id >= ?3 ORDER BY id DESC LIMIT ?2
                    """, [.text(state.rawValue)])
            }
        }
        return Array(found.sorted(by: >).prefix(filter.limit))
    }

    private func held(_ filter: Filter) throws -> [String] {
        let after = Connection.Value.text(filter.above)
        let paused = try connection.query(
            """
            SELECT \(UploadRecord.columns) FROM upload INDEXED BY upload_paused
            WHERE paused_at IS NOT NULL AND id < ?1 ORDER BY id DESC
            """, [after]
        ) { row throws(StoreError) in
            var found: [String] = []
            while found.count < filter.limit, try row.next() {
                let upload = UploadRecord(row, 0)
                if filter.takes(upload) { found.append(upload.id) }
            }
            return found
        }
        let waiting = try connection.all(
            "SELECT id FROM upload INDEXED BY upload_backoff WHERE backoff_until > ?2 AND backoff_until > 0 AND id < ?1",
            [after, .integer(clocks.monotonic().nanoseconds)]
        ) { $0.text(0) }
        var found = Set(paused)
        for id in waiting.sorted(by: >).prefix(filter.limit) {
            if let upload = try upload(id), filter.takes(upload) { found.insert(id) }
        }
        return Array(found)
    }

    private func unsettled(_ filter: Filter) throws -> [String] {
        let assets = try connection.all(
            "SELECT id FROM asset INDEXED BY asset_unsettled WHERE state = 'unsettled' ORDER BY id DESC"
        ) { $0.integer(0) }
        var found: [String] = []
        for asset in assets where found.count < filter.limit {
            found += try uploads(of: asset).filter { filter.takes($0) }.map(\.id).reversed()
        }
        return found
    }

    /// The classes and states that have uploads.
    package func classes() throws -> [(upload: UploadClass, state: UploadState)] {
        try connection.all("SELECT folder, destination, state FROM tally WHERE uploads > 0") { row in
            (UploadClass(folder: row.text(0), destination: row.text(1)), UploadState(rawValue: row.text(2)))
        }.compactMap { row in row.1.map { (row.0, $0) } }
    }

    /// Classes with uploads that wait to be sent, also those of folders and destinations that are no longer configured.
    package func waitingClasses() throws -> [(upload: UploadClass, count: Int)] {
        try connection.all(
            "SELECT folder, destination, uploads FROM tally WHERE state = 'queued' AND uploads > 0 ORDER BY 1, 2"
        ) { row in (UploadClass(folder: row.text(0), destination: row.text(1)), Int(row.integer(2))) }
    }

    /// Classes with a queued upload that is not paused and waits for no next attempt.
    ///
    /// - Parameters:
    ///   - time: Also uploads whose wait ends by then.
    ///   - passed: None of these; few.
    package func readyClasses(
        within time: Duration = .zero, besides passed: Set<String> = []
    ) throws -> [UploadClass] {
        let now = clocks.monotonic().advanced(by: time).nanoseconds
        let ids = TextMap.text(Dictionary(passed.map { ($0, "") }, uniquingKeysWith: { first, _ in first }))
        return try waitingClasses().map(\.upload).filter { upload in
            try connection.first(
                """
                SELECT 1 FROM upload INDEXED BY upload_next WHERE destination = ?1 AND folder = ?2 AND state = 'queued'
                AND paused_at IS NULL AND backoff_until <= ?3 AND id NOT IN (SELECT key FROM json_each(?4)) LIMIT 1
                """, [.text(upload.destination), .text(upload.folder), .integer(now), .text(ids)]
            ) { $0.integer(0) } != nil
        }
    }

    /// Assets that are examined in one piece.
    private static let piece: Int64 = 4_096

    /// Uploads are numbered in the order of their assets: the newest asset has the newest uploads.
    private func search(_ filter: Filter) async throws -> [UploadRow] {
        func asset(_ sql: String, _ id: String) throws -> Int64? {
            try connection.first(sql, [.text(id)]) { $0.integer(0) }
        }
        var above =
            try asset("SELECT asset FROM upload WHERE id < ?1 ORDER BY id DESC LIMIT 1", filter.above).map { $0 + 1 }
            ?? 0
        let floor = try asset("SELECT asset FROM upload WHERE id >= ?1 ORDER BY id LIMIT 1", filter.floor) ?? .max
        var found: [UploadRow] = []
        while above > floor && found.count < filter.limit {
            let piece: [Connection.Value] = [.integer(above), .integer(max(floor, above - Self.piece))]
            let assets =
                if let text = filter.text {
                    try connection.all(
                        "SELECT id FROM asset WHERE id < ?1 AND id >= ?2 AND instr(relative, ?3) > 0 ORDER BY id DESC",
                        piece + [.blob(text.bytes)]
                    ) { $0.integer(0) }
                } else {
                    try connection.all("SELECT id FROM asset WHERE id < ?1 AND id >= ?2 ORDER BY id DESC", piece) {
                        $0.integer(0)
                    }
                }
            for asset in assets where found.count < filter.limit {
                for upload in try uploads(of: asset).reversed() where filter.takes(upload) {
                    if let row = try row(upload.id) { found.append(row) }
                }
            }
            above -= Self.piece
            await Task.yield()
        }
        return Array(found.prefix(filter.limit))
    }
}
