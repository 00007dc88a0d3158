package import Core

/// Rows of `checkpoint`: how far an upload has come, in the terms of its destination.
package struct CheckpointTable<Access> {
    let tx: Transaction<Access>

    package func find(_ upload: String) throws -> Checkpoint? {
        try tx.connection.first("SELECT body FROM checkpoint WHERE upload = ?1", [.text(upload)]) { $0.text(0) }
            .flatMap { TextMap.map($0) }.map { Checkpoint($0) }
    }
}

extension CheckpointTable where Access == Writing {
    /// Stores the checkpoint of an upload that this run holds.
    ///
    /// - Returns: Whether this run still holds the upload. If it was cancelled meanwhile, the objects named in the
    ///   checkpoint are queued for removal at the remote.
    package func record(_ checkpoint: Checkpoint, for id: String, acked: Int64? = nil) throws -> Bool {
        guard try store(checkpoint, for: id) else { return false }
        if let acked { try tx.progress.setAcknowledged(acked, of: id) }
        return true
    }

    /// Stores checkpoints of uploads that go together.
    ///
    /// - Returns: The uploads that this run still holds.
    package func record(_ checkpoints: [String: Checkpoint]) throws -> Set<String> {
        Set(try checkpoints.filter { try store($0.value, for: $0.key) }.keys)
    }

    /// - Returns: Whether this run still holds the upload.
    func store(_ checkpoint: Checkpoint, for id: String) throws -> Bool {
        guard let upload = try tx.uploads.find(id) else { return false }
        let fields = TextMap.text(checkpoint.fields)
        guard upload.state == .uploading else {
            // Cancelled during the request: the object that it made is to be removed.
            try tx.connection.run(
                "UPDATE remote_delete SET checkpoint = ?2 WHERE upload = ?1 AND earlier = 0",
                [.text(id), .text(fields)])
            return false
        }
        // An empty checkpoint means that nothing was begun: space at the destination is required as for any other
        // upload.
        if checkpoint.fields.isEmpty {
            try tx.connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(id)])
            try tx.remoteNames.clear(of: id)
        } else {
            try tx.connection.run("INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2)", [.text(id), .text(fields)])
        }
        return true
    }

    /// Stores the checkpoint of a new beginning, and queues the objects named in `old` for removal at the remote, as
    /// one change.
    ///
    /// - Returns: Whether this run still holds the upload. If it was cancelled meanwhile, that has queued all objects
    ///   already.
    package func renew(_ checkpoint: Checkpoint, for id: String, leaving old: Checkpoint?) throws -> Bool {
        guard let upload = try tx.uploads.find(id), upload.state == .uploading else { return false }
        if let old { try tx.remoteDeletions.queue(of: upload, old, isEarlier: true) }
        guard try store(checkpoint, for: id) else { return false }
        try tx.connection.run("DELETE FROM part WHERE upload = ?1", [.text(id)])
        try tx.waste.record(of: id, standingAt: 0)
        try tx.connection.run(
            "UPDATE upload SET furthest = max(acked, furthest), acked = 0, sent = 0 WHERE id = ?1", [.text(id)])
        // The new beginning may still be the same object at the remote.
        if upload.named.map({ !checkpoint.fields.values.contains($0) }) ?? false { try tx.remoteNames.clear(of: id) }
        return true
    }
}

extension Transaction {
    package var checkpoints: CheckpointTable<Access> { CheckpointTable(tx: self) }
}
