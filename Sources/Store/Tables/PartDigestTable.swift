package import Core

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

/// Rows of `part_digest`: digests of the parts of a staged copy, kept as long as the copy.
package struct PartDigestTable<Access> {
    let tx: Transaction<Access>

    /// Digests of parts that were computed while an asset's copy was made; empty when there are none.
    package func of(_ asset: Int64) throws -> PartDigests {
        let bytes = try tx.connection.first("SELECT digests FROM part_digest WHERE asset = ?1", [.integer(asset)]) {
            $0.blob(0)
        }
        return bytes.flatMap { PartDigests(encoded: $0) } ?? PartDigests()
    }
}

extension PartDigestTable where Access == Writing {
    /// Within the transaction that records the copy.
    func set(_ digests: PartDigests, of asset: Int64) throws {
        if digests.isEmpty { return }
        try tx.connection.run(
            "INSERT OR REPLACE INTO part_digest VALUES (?1, ?2)", [.integer(asset), .blob(digests.encoded)])
    }
}

extension Transaction {
    package var partDigests: PartDigestTable<Access> { PartDigestTable(tx: self) }
}
