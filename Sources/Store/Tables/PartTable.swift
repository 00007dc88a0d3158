package import Core

/// Rows of `part`: parts that a remote has acknowledged.
package struct PartTable<Access> {
    let tx: Transaction<Access>

    /// The parts that the remote has acknowledged since the upload was begun, in their order.
    package func of(_ id: String) throws -> [AcknowledgedPart] {
        try tx.connection.all("SELECT number, size, tag FROM part WHERE upload = ?1 ORDER BY number", [.text(id)]) {
            AcknowledgedPart(index: Int($0.integer(0)), size: $0.integer(1), tag: $0.text(2))
        }
    }
}

extension PartTable where Access == Writing {
    /// Stores parts of an upload that this run holds.
    ///
    /// - Parameters:
    ///   - lost: Numbers of parts that the remote turned out not to have.
    ///   - acked: Bytes of all parts that it has now.
    /// - Returns: Whether this run still holds the upload.
    package func record(_ parts: [AcknowledgedPart], lost: [Int] = [], of id: String, acked: Int64) throws -> Bool {
        guard try tx.uploads.find(id)?.state == .uploading else { return false }
        for number in lost {
            try tx.connection.run(
                "DELETE FROM part WHERE upload = ?1 AND number = ?2", [.text(id), .integer(Int64(number))])
        }
        for part in parts {
            try tx.connection.run(
                "INSERT OR REPLACE INTO part VALUES (?1, ?2, ?3, ?4)",
                [.text(id), .integer(Int64(part.index)), .integer(part.size), .text(part.tag)])
        }
        try tx.progress.setAcknowledged(acked, of: id)
        return true
    }
}

extension Transaction {
    package var parts: PartTable<Access> { PartTable(tx: self) }
}
