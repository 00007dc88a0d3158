package import Core

// Uploads in numbered parts.

extension Store {
    /// The parts that the remote has acknowledged since the upload was begun, in their order.
    package func parts(of id: String) throws -> [AcknowledgedPart] {
        try connection.all("SELECT number, size, tag FROM part WHERE upload = ?1 ORDER BY number", [.text(id)]) {
            AcknowledgedPart(index: Int($0.integer(0)), size: $0.integer(1), tag: $0.text(2))
        }
    }

    /// Stores parts of an upload that this run holds. Durable when it returns.
    ///
    /// - Parameters:
    ///   - lost: Numbers of parts that the remote turned out not to have.
    ///   - acked: Bytes of all parts that it has now.
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile.
    package func took(_ parts: [AcknowledgedPart], lost: [Int] = [], of id: String, acked: Int64) async throws {
        let isHeld = try await change { connection in
            guard try self.upload(id)?.state == .uploading else { return false }
            for number in lost {
                try connection.run(
                    "DELETE FROM part WHERE upload = ?1 AND number = ?2", [.text(id), .integer(Int64(number))])
            }
            for part in parts {
                try connection.run(
                    "INSERT OR REPLACE INTO part VALUES (?1, ?2, ?3, ?4)",
                    [.text(id), .integer(Int64(part.index)), .integer(part.size), .text(part.tag)])
            }
            try self.keep(acked: acked, of: id)
            return true
        }
        if !isHeld { throw LeaseLost() }
    }
}
