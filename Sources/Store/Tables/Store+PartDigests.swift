package import Core

// Digests of the parts of a copy, kept as long as the copy.

extension Schema {
    /// Without a row, a caller that needs a part's digest reads the part.
    static let partDigests = """
        CREATE TABLE part_digest (
            asset INTEGER PRIMARY KEY REFERENCES asset (id),
            digests BLOB NOT NULL                  -- PartDigests
        ) STRICT;
        CREATE TRIGGER part_digest_end AFTER UPDATE OF state ON asset WHEN old.state = 'staged' AND new.state <> 'staged'
        BEGIN
            DELETE FROM part_digest WHERE asset = old.id;
        END;
        """
}

extension Store {
    /// Within the transaction that records the copy.
    func keep(_ digests: PartDigests, of asset: Int64, _ connection: Connection) throws {
        if digests.isEmpty { return }
        try connection.run(
            "INSERT OR REPLACE INTO part_digest VALUES (?1, ?2)", [.integer(asset), .blob(digests.encoded)])
    }

    /// Digests of parts that were computed while an asset's copy was made; empty when there are none.
    package func partDigests(of asset: Int64) throws -> PartDigests {
        let bytes = try connection.first("SELECT digests FROM part_digest WHERE asset = ?1", [.integer(asset)]) {
            $0.blob(0)
        }
        return bytes.flatMap { PartDigests(encoded: $0) } ?? PartDigests()
    }
}
