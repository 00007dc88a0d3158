package import Core

private let evidenceTable = """
    CREATE TABLE evidence (
        folder TEXT NOT NULL, relative BLOB NOT NULL, destination TEXT NOT NULL, standing TEXT NOT NULL,
        size INTEGER NOT NULL, modified INTEGER, sha256 BLOB, upload TEXT, remote TEXT, checkpoint TEXT,
        generation INTEGER NOT NULL, acked INTEGER NOT NULL);
    CREATE INDEX evidence_place ON evidence (relative, folder, destination);
    """

/// Rows of `evidence`: facts of a damaged database, while a new one is made.
package struct EvidenceTable<Access> {
    let tx: Transaction<Access>

    /// The evidence for this file and this destination; sent uploads come first.
    package func find(_ folder: String, _ relative: FilePath, _ destination: String) throws -> [Evidence] {
        try tx.connection.all(
            """
            SELECT standing, size, modified, sha256, upload, remote, checkpoint, generation, acked FROM evidence
            WHERE relative = ?1 AND folder = ?2 AND destination IN (?3, '') ORDER BY standing = 'sent' DESC
            """, [.blob(relative.bytes), .text(folder), .text(destination)]
        ) { row in
            Evidence.Stage(rawValue: row.text(0)).map {
                Evidence(
                    stage: $0, size: row.integer(1), modified: row.optionalInteger(2), sha256: row.optionalBlob(3),
                    upload: row.optionalText(4),
                    remote: row.optionalText(5).flatMap { StoredJSON.decode(RemoteObject.self, json: $0) },
                    checkpoint: row.optionalText(6).flatMap { StoredJSON.decode([String: String].self, json: $0) }.map {
                        Checkpoint($0)
                    }, generation: Int(row.integer(7)), acked: row.integer(8))
            }
        }.compactMap(\.self)
    }
}

extension EvidenceTable where Access == Writing {
    func create() throws { try tx.connection.execute(evidenceTable) }

    func insert(_ row: SalvagedRow) throws { try row.insert(tx.connection) }

    package func drop() throws { try tx.connection.run("DROP TABLE IF EXISTS evidence") }
}

extension Transaction {
    package var evidence: EvidenceTable<Access> { EvidenceTable(tx: self) }
}
