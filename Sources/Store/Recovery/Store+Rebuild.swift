package import Core
internal import Linux

// A new database, made from the contents of folders, staging and destinations.

extension Store {
    /// Collects the readable facts of the old database in `old`, in a separate table that ``EvidenceTable/drop()``
    /// removes.
    ///
    /// - Returns: The number of rows that count, and whether the old database could be read to its end.
    package func salvage(from old: FilePath) async throws -> (rows: Int, isWhole: Bool) {
        try await write { tx in try tx.evidence.create() }
        let reading: Connection  // closes itself when it is released
        do { reading = try Connection(path: old.appending(StateFiles.database), asEvidence: true) } catch {
            return (0, false)
        }
        let tables: [SalvageTable] = [.uploads, .history, .skipped, .skippedEarlier]
        var (rows, isWhole) = (0, true)
        for table in tables where table.isExpected(in: reading) {
            for backwards in [false, true] {
                var walk = SalvageWalk(table, reading, backwards: backwards)
                while let batch = walk.next() {
                    rows += batch.count
                    try await write { tx in for row in batch { try tx.evidence.insert(row) } }
                }
                if walk.isWhole { break }
                // The damaged page is approached from the other end.
                isWhole = false
            }
        }
        return (rows, isWhole)
    }

    /// Takes over the readable ledger of a database that is given up: a damaged disk must not start a quota from zero.
    /// Bytes that are reserved there count as sent. Each row is checked before it counts.
    ///
    /// - Returns: Whether it could be read to its end.
    package func salvageLedger(from old: FilePath) async throws -> Bool {
        let reading: Connection  // closes itself when it is released
        do { reading = try Connection(path: old.appending(StateFiles.database), asEvidence: true) } catch {
            return false
        }
        var isWhole = true
        for backwards in [false, true] {
            let (rows, isRead) = LedgerSalvage.rows(reading, backwards: backwards)
            try await write { tx in for row in rows { try tx.ledger.insertSalvaged(row) } }
            if isRead { break }
            // The damaged page is approached from the other end.
            isWhole = false
        }
        let (steps, isRead) = LedgerSalvage.steps(reading)
        if !steps.isEmpty { try await write { tx in try tx.ledger.pay(steps) } }
        return isWhole && isRead
    }

    /// Puts this complete new database in place of the old one. The store is closed then.
    ///
    /// - Parameter moment: `YYYYMMDD-HHMMSS`, in the old one's new name. A number follows where that name is taken.
    /// - Returns: The old database's new path; `nil` when there was none.
    package func install(moment: String) async throws -> FilePath? {
        let stamp = try StateFiles.freeStamp(in: folder, at: moment)
        try await write { tx in try tx.settings.set("rebuilt", stamp) }
        closeFiles()
        defer { close() }
        CrashPoint.reached("rebuild-finished")
        return try StateFiles.install(in: folder, stamp: stamp)
    }

    /// Removes this new database completely: it was a trial, or could not be made.
    package func discard() throws {
        closeFiles()
        defer { close() }
        if name != StateFiles.database { try StateFiles.remove(name, in: folder) }
    }
}

extension StateFiles {
    /// Ends a rebuild that was complete when it was interrupted: only the last renames are missing.
    ///
    /// - Returns: `nil` when there was none; otherwise the old database's new path, if there was one.
    package static func finishRebuild(in folder: FilePath) throws -> FilePath?? {
        guard try FileStatus.ifPresent(at: folder.appending(rebuilt)) != nil else { return nil }
        let lock = try InstanceLock(folder: folder)
        defer { withExtendedLifetime(lock) {} }
        let stamp: String?
        do {
            let connection = try Connection(path: folder.appending(rebuilt))
            defer { connection.close() }
            stamp = try connection.first("SELECT value FROM setting WHERE name = 'rebuilt'") { $0.text(0) }
        } catch {
            // Interrupted so early that it is no database yet: it is made again.
            return nil
        }
        guard let stamp else { return nil }
        return try install(in: folder, stamp: stamp)
    }
}
