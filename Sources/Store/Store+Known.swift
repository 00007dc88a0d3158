package import Core
internal import Glibc

// "Is this file known?", as a scan asks a million times.

extension Store {
    /// What stops the file at a place from being picked up again; `nil` when nothing does.
    package struct Known: Sendable, Hashable {
        package var size: Int64
        package var modified: Int64
        /// `false` for one that was there before its folder was watched.
        package var wasTaken: Bool
    }

    package func isKnown(_ folder: String, _ relative: FilePath) throws -> Known? {
        try tombstone(folder, relative).map {
            Known(size: $0.identity.size, modified: $0.identity.modified, wasTaken: $0.wasRecorded)
        }
    }

    /// Which of these versions are known already: recorded, done, or there before the folder was watched.
    ///
    /// Renews the tombstones of those that are, at most once a week each, so that a scan over known files writes
    /// nothing.
    package func known(_ identities: [StoredIdentity]) async throws -> [Bool] {
        let now = clocks.wall().milliseconds
        var answers = [Bool](repeating: false, count: identities.count)
        var old: [Int] = []
        let order = Self.inOrderOfKey(identities)
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

    /// Tombstones that are passed over on the way to the next one asked about, before it is searched from the top of the
    /// tree: a step costs about a tenth of a search.
    private static let stride = 8

    /// Goes along the table as far as the next one asked about is near: the files of a directory stand side by side
    /// there, and a look-up for each alone would cost several times as much.
    ///
    /// - Parameter found: Is told of a known one, and when it was renewed (milliseconds since 1970).
    /// - Returns: From where in `order` to go on; always further than `start`.
    private func walk(
        _ order: [Int], from start: Int, of identities: [StoredIdentity], found: (Int, Int64) -> Void
    ) throws(StoreError) -> Int {
        let first = identities[order[start]]
        let values: [Connection.Value] = [.text(first.folder), .blob(first.relative.bytes)]
        return try connection.query(Self.stones, values) { row throws(StoreError) in
            var next = start
            var passed = 0
            while try row.next() {
                // Everything that is asked about before this stone has none.
                while true {
                    let place = row.order(0, identities[order[next]].relative.bytes)
                    if place < 0 { break }
                    if place == 0, row.isSameVersion(as: identities[order[next]]) { found(order[next], row.integer(6)) }
                    passed = 0
                    next += 1
                    if next == order.endIndex || identities[order[next]].folder != first.folder { return next }
                }
                // The first stone is never before the first one asked about, so this is further than the start.
                passed += 1
                if passed > Self.stride { return next }
            }
            // No stone follows in this folder.
            while next < order.endIndex, identities[order[next]].folder == first.folder { next += 1 }
            return next
        }
    }

    private static let stones = """
        SELECT relative, size, modified, inode, born, file_system, seen_at FROM tombstone
        WHERE folder = ?1 AND relative >= ?2 ORDER BY relative
        """

    /// The indices of `identities` as their tombstones stand in the table: by folder, then by the bytes of the path.
    private static func inOrderOfKey(_ identities: [StoredIdentity]) -> [Int] {
        identities.indices.sorted { a, b in
            if identities[a].folder != identities[b].folder { return identities[a].folder < identities[b].folder }
            return order(identities[a].relative.bytes, identities[b].relative.bytes) < 0
        }
    }

    /// As SQLite compares blobs: by their bytes, and the shorter first where one begins with the other.
    private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
        a.withUnsafeBytes { a in b.withUnsafeBytes { b in order(a, b) } }
    }

    fileprivate static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        guard let first = a.baseAddress, let second = b.baseAddress else { return a.count - b.count }
        let difference = memcmp(first, second, min(a.count, b.count))
        return difference == 0 ? a.count - b.count : Int(difference)
    }
}

extension Connection.Row {
    /// Where the bytes of a column stand beside `bytes`: below 0 before them, 0 for the same. Compared in place.
    fileprivate func order(_ column: Int32, _ bytes: [UInt8]) -> Int {
        -withBytes(column) { mine in bytes.withUnsafeBytes { Store.order($0, mine) } }
    }

    /// ``Core/StoredIdentity/isSameVersion(as:)`` for the tombstone that this row is, whose place is the same; without
    /// making a value of it.
    fileprivate func isSameVersion(as other: StoredIdentity) -> Bool {
        guard integer(1) == other.size, integer(2) == other.modified else { return false }
        var stone = other
        stone.inode = optionalInteger(3).map { UInt64(bitPattern: $0) }
        stone.born = optionalInteger(4)
        if !isText(5, other.fileSystem) { stone.fileSystem = optionalText(5) }
        return stone.isSameVersion(as: other)
    }

    private func isText(_ column: Int32, _ text: String?) -> Bool {
        guard var text else { return isNull(column) }
        return withBytes(column) { mine in text.withUTF8 { Store.order(UnsafeRawBufferPointer($0), mine) == 0 } }
            && !isNull(column)
    }
}
