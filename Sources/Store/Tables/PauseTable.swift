internal import Core

/// Rows of `pause`: pauses of everything, of folders and of destinations.
package struct PauseTable<Access> {
    let tx: Transaction<Access>

    package func all() throws -> [PauseRecord] {
        try tx.connection.all("SELECT scope, name, since, until FROM pause") { row in
            PauseRecord(
                scope: PauseRecord.Scope(rawValue: row.text(0)), name: row.text(1),
                since: WallTime(milliseconds: row.integer(2)),
                until: row.optionalInteger(3).map { WallTime(milliseconds: $0) })
        }
    }
}

extension PauseTable where Access == Writing {
    package func set(_ pause: PauseRecord) throws {
        try tx.connection.run(
            "INSERT OR REPLACE INTO pause VALUES (?1, ?2, ?3, ?4)",
            [
                .text(pause.scope.rawValue), .text(pause.name), .integer(pause.since.milliseconds),
                .init(pause.until?.milliseconds),
            ])
        try tx.events.append(.paused(pause.scope, name: pause.name))
    }

    /// - Returns: Whether there was one.
    @discardableResult
    package func clear(_ scope: PauseRecord.Scope, _ name: String) throws -> Bool {
        try tx.connection.run(
            "DELETE FROM pause WHERE scope = ?1 AND name = ?2", [.text(scope.rawValue), .text(name)])
        guard tx.connection.changes > 0 else { return false }
        try tx.events.append(.resumed(scope, name: name))
        return true
    }
}

extension Transaction {
    package var pauses: PauseTable<Access> { PauseTable(tx: self) }
}
