package import Core

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

/// Rows of `media`: metadata of recordings. Conditions ask for the duration; the rest is for display.
package struct MediaTable<Access> {
    let tx: Transaction<Access>

    /// The metadata of an asset's recording; empty when there is none.
    package func of(_ asset: Int64) throws -> MediaFacts {
        try tx.connection.first(
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

extension MediaTable where Access == Writing {
    /// Replaces the metadata of each of these assets.
    func set(_ facts: MediaFacts, of asset: Int64) throws {
        if facts.isEmpty {
            // The version before this one may have had metadata.
            return try tx.connection.run("DELETE FROM media WHERE asset = ?1", [.integer(asset)])
        }
        try tx.connection.run(
            "INSERT OR REPLACE INTO media VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            [
                .integer(asset), .init(facts.recorded?.milliseconds), .init(facts.duration),
                .init(facts.width.map { Int64($0) }), .init(facts.height.map { Int64($0) }), .init(facts.make),
                .init(facts.model),
            ])
    }
}

extension Transaction {
    package var media: MediaTable<Access> { MediaTable(tx: self) }
}
