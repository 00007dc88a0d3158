internal import Core

// Assets whose bytes are not a copy of their source: uploaded in place, or made by a command.

extension Store {
    /// Handles a changed source that `upload` read in place. The bytes sent of the old version are given up, and with
    /// it every upload of it that does not run: running ones find out for themselves. The new version comes as a new
    /// asset.
    func sourceChanged(_ upload: UploadRecord, _ failure: Failure) throws {
        for one in try uploads(of: upload.asset) {
            guard one.id == upload.id || one.state == .queued || one.state == .staging else { continue }
            try note(failure, one)
            try abandon(one, code: failure.code)
        }
        // Perhaps only its ctime moved: the watcher must not take it for a known version.
        try removeTombstone(upload.asset)
    }

    /// Ends uploads that read an earlier version of a file in place, when a new version is recorded. The bytes that
    /// they would continue with are not the file's any more, and their source may be released under the new version's
    /// record before they check it again. A running upload finds out by its state.
    ///
    /// - Parameter identity: The new version's.
    func endSuperseded(by identity: StoredIdentity) throws {
        let earlier = try connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_relative
            WHERE relative = ?1 AND folder = ?2 AND keeping = 'in-place' AND state = 'staged'
            """, [.blob(identity.relative.bytes), .text(identity.folder)]
        ) { AssetRecord($0, 0) }
        for asset in earlier where !asset.identity.isSameVersion(as: identity) {
            let failure = Failure(
                .local, code: Failure.sourceChanged,
                message:
                    "a newer version of \(asset.path.display) was taken up while this one was uploaded in place: what was "
                    + "sent of this one is given up",
                at: clocks.wall(), retryable: false)
            for upload in try uploads(of: asset.id) where !upload.state.isTerminal {
                try note(failure, upload)
                try abandon(upload, code: failure.code)
            }
        }
    }

    /// Whether a later version of the asset's file was recorded.
    package func hasNewerVersion(_ asset: AssetRecord) throws -> Bool {
        let later = try connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_relative
            WHERE relative = ?1 AND folder = ?2 AND id > ?3
            """, [.blob(asset.identity.relative.bytes), .text(asset.folder), .integer(asset.id)]
        ) { AssetRecord($0, 0) }
        return later.contains { !$0.identity.isSameVersion(as: asset.identity) }
    }

    /// Records that the source of an asset that is uploaded in place has another ctime, and the same content.
    package func proven(_ asset: Int64, changed: Int64) async throws {
        try await change { connection in
            try connection.run(
                "UPDATE asset SET changed = ?2 WHERE id = ?1 AND keeping = 'in-place'",
                [.integer(asset), .integer(changed)])
        }
    }

    /// Makes an upload begin at its first byte, under another generation: the remote's bytes of the earlier version are
    /// removed there.
    func forgetProgress(of upload: UploadRecord) throws {
        if let old = try checkpoint(upload.id) {
            try removeRemains(of: upload, old, isEarlier: true)
            // Names that are made from the id must differ from those of the removed objects.
            try connection.run(
                "UPDATE upload SET generation = generation + 1, attempt = 0 WHERE id = ?1", [.text(upload.id)])
        }
        try connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        try connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(upload.id)])
        try forgetName(of: upload.id)
    }
}
