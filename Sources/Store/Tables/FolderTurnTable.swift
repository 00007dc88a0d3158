package import Core

/// The work at which folders take turns.
package enum TurnKind: Sendable {
    /// Uploads to a destination.
    case transfers(String)
    /// Copies into staging.
    case copies

    fileprivate var column: Connection.Value {
        switch self {
        case .transfers(let destination): .text(destination)
        case .copies: .text("")
        }
    }
}

/// Rows of `turn`: the turns of folders, kept over restarts.
package struct FolderTurnTable<Access> {
    let tx: Transaction<Access>

    package func of(_ turning: TurnKind) throws -> FolderTurns {
        let rows = try tx.connection.all("SELECT folder, last FROM turn WHERE destination = ?1", [turning.column]) {
            ($0.text(0), Int($0.integer(1)))
        }
        return FolderTurns(last: Dictionary(rows) { $1 })
    }
}

extension FolderTurnTable where Access == Writing {
    /// Stores the turns. Part of the transaction that gave them.
    ///
    /// - Parameter before: The turns as they were read in the transaction.
    func store(
        _ turns: FolderTurns, of turning: TurnKind, since before: FolderTurns
    ) throws {
        for (folder, last) in turns.last where before.last[folder] != last {
            try tx.connection.run(
                "INSERT OR REPLACE INTO turn VALUES (?1, ?2, ?3)",
                [turning.column, .text(folder), .integer(Int64(last))])
        }
    }
}

extension Transaction {
    package var turns: FolderTurnTable<Access> { FolderTurnTable(tx: self) }
}
