package import Core

// Metadata of recordings. For display: no decision depends on it.

extension Schema {
    /// A row for each asset with any metadata.
    static let media = """
        CREATE TABLE media (
            asset INTEGER PRIMARY KEY REFERENCES asset (id),
            recorded INTEGER,                      -- ms since 1970
            duration INTEGER,                      -- ms
            width INTEGER,                         -- pixels as shown
            height INTEGER,
            make TEXT,
            model TEXT
        ) STRICT;
        """
}

extension Store {
    /// Replaces the metadata of each of these assets. Within the transaction of the caller.
    func note(_ facts: MediaFacts, of asset: Int64, _ connection: Connection) throws {
        if facts.isEmpty {
            // The version before this one may have had metadata.
            return try connection.run("DELETE FROM media WHERE asset = ?1", [.integer(asset)])
        }
        try connection.run(
            "INSERT OR REPLACE INTO media VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            [
                .integer(asset), .init(facts.recorded?.milliseconds), .init(facts.duration),
                .init(facts.width.map { Int64($0) }), .init(facts.height.map { Int64($0) }), .init(facts.make),
                .init(facts.model),
            ])
    }

    /// The metadata of an asset's recording; empty when there is none.
    package func mediaFacts(of asset: Int64) throws -> MediaFacts {
        try connection.first(
            "SELECT recorded, duration, width, height, make, model FROM media WHERE asset = ?1", [.integer(asset)]
        ) { row in
            MediaFacts(
                recorded: row.optionalInteger(0).map { WallTime(milliseconds: $0) }, duration: row.optionalInteger(1),
                width: row.optionalInteger(2).map { Int(clamping: $0) },
                height: row.optionalInteger(3).map { Int(clamping: $0) }, make: row.optionalText(4),
                model: row.optionalText(5))
        } ?? MediaFacts()
    }
}
