package import Core

// Turns of folders, kept over restarts.

extension Store {
    /// The work at which folders take turns.
    package enum WorkKind: Sendable {
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

    package func turns(of turning: WorkKind) throws -> FolderTurns {
        let rows = try connection.all("SELECT folder, last FROM turn WHERE destination = ?1", [turning.column]) {
            ($0.text(0), Int($0.integer(1)))
        }
        return FolderTurns(last: Dictionary(rows) { $1 })
    }

    /// Stores the turns. Part of the transaction that gave them.
    ///
    /// - Parameter before: The turns as they were read in the transaction.
    func keep(
        _ turns: FolderTurns, of turning: WorkKind, since before: FolderTurns, _ connection: Connection
    ) throws {
        for (folder, last) in turns.last where before.last[folder] != last {
            try connection.run(
                "INSERT OR REPLACE INTO turn VALUES (?1, ?2, ?3)",
                [turning.column, .text(folder), .integer(Int64(last))])
        }
    }
}
