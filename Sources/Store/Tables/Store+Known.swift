package import Core
internal import Glibc

// The question whether a file is known, as a scan asks it a million times.

extension Store {
    /// The fact that keeps the file at a path from being recorded again; `nil` when there is none.
    package struct Known: Sendable, Hashable {
        package var size: Int64
        package var modified: Int64
        /// `false` for a file that existed before its folder was watched.
        package var wasTaken: Bool
    }

    package func isKnown(_ folder: String, _ relative: FilePath) throws -> Known? {
        try tombstone(folder, relative).map {
            Known(size: $0.identity.size, modified: $0.identity.modified, wasTaken: $0.wasRecorded)
        }
    }

    /// Whether these versions are known already: recorded, done, or there before the folder was watched.
    ///
    /// Renews the tombstones of known ones, at most once a week each, so that a scan over known files writes nothing.
    package func known(_ identities: Identities) async throws -> [Bool] {
        let now = clocks.wall().milliseconds
        var answers = [Bool](repeating: false, count: identities.count)
        var old: [Int] = []
        let order = identities.inOrder()
        try together {
            var next = order.startIndex
            while next < order.endIndex {
                next = try walk(order, from: next, of: identities) { index, seenAt in
                    answers[index] = true
                    if abs(now - seenAt) > 7 * 86_400_000 { old.append(index) }
                }
            }
        }
        if !old.isEmpty {
            try await change { connection in
                for identity in old.map({ identities[$0] }) {
                    try connection.run(
                        "UPDATE tombstone SET seen_at = ?3 WHERE folder = ?1 AND relative = ?2",
                        [.text(identity.folder), .blob(identity.relative.bytes), .integer(now)])
                }
            }
        }
        return answers
    }

    package func known(_ identities: [StoredIdentity]) async throws -> [Bool] {
        try await known(Identities(identities))
    }

    /// Tombstones that are stepped over on the way to the next requested one, before it is searched from the top of the
    /// tree: a step costs about a tenth of a search.
    private static let stride = 8

    /// Steps along the table as long as the next requested file is near: the files of a directory are neighbours there,
    /// and a look-up for each alone would cost several times as much.
    ///
    /// - Parameter found: Called with each known file, and the time of its renewal (milliseconds since 1970).
    /// - Returns: The position in `order` to continue from; always further than `start`.
    private func walk(
        _ order: [Int], from start: Int, of identities: Identities, found: (Int, Int64) -> Void
    ) throws(StoreError) -> Int {
        let first = identities[order[start]]
        let values: [Connection.Value] = [.text(first.folder), .blob(first.relative.bytes)]
        return try connection.query(Self.stones, values) { row throws(StoreError) in
            var next = start
            var passed = 0
            while try row.next() {
                // All requested files that sort before this stone have none.
                while true {
                    let place = row.withBytes(0) { identities.order(order[next], $0) }
                    if place > 0 { break }
                    if place == 0, row.isSameVersion(as: order[next], of: identities) {
                        found(order[next], row.integer(6))
                    }
                    passed = 0
                    next += 1
                    if next == order.endIndex || !identities.haveOneFolder(order[next], order[start]) { return next }
                }
                // The first stone is never before the first requested file, so this is further than the start.
                passed += 1
                if passed > Self.stride { return next }
            }
            // No further stone exists in this folder.
            while next < order.endIndex, identities.haveOneFolder(order[next], order[start]) { next += 1 }
            return next
        }
    }

    private static let stones = """
        SELECT relative, size, modified, inode, born, file_system, seen_at FROM tombstone
        WHERE folder = ?1 AND relative >= ?2 ORDER BY relative
        """
}

extension Connection.Row {
    /// ``Core/StoredIdentity/isSameVersion(as:)`` for the tombstone in this row, which has the same path; without
    /// making a value of it.
    fileprivate func isSameVersion(as index: Int, of identities: Identities) -> Bool {
        let other = identities.version(at: index)
        guard integer(1) == other.size, integer(2) == other.modified else { return false }
        let stone = FileVersion(
            size: other.size, modified: other.modified, inode: optionalInteger(3).map { UInt64(bitPattern: $0) },
            born: optionalInteger(4))
        return stone.isSame(as: other, areOnOneFileSystem: isText(5, identities.fileSystem(at: index)))
    }

    /// - Returns: `false` also when there is no text.
    private func isText(_ column: Int32, _ text: String?) -> Bool {
        guard var text, !isNull(column) else { return false }
        return withBytes(column) { mine in
            text.withUTF8 { text in
                guard let ours = text.baseAddress, let theirs = mine.baseAddress else {
                    return text.count == mine.count
                }
                return text.count == mine.count && memcmp(ours, theirs, mine.count) == 0
            }
        }
    }
}
