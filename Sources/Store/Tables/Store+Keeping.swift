internal import Core

// Assets whose bytes are not a copy of their source: uploaded in place, or made by a command.

extension Store {
    /// The source that `upload` read in place is another version now. What was sent of the old one is given up, and with it
    /// every upload of it that is not under way: those find out for themselves. The new version comes as a new asset.
    func sourceChanged(_ upload: UploadRecord, _ failure: Failure) throws {
        for one in try uploads(of: upload.asset) {
            guard one.id == upload.id || one.state == .queued || one.state == .staging else { continue }
            try note(failure, one)
            try abandon(one, code: failure.code)
        }
        // Perhaps only its ctime moved: the watcher must not take it for a known version.
        try digUp(upload.asset)
    }

    /// A version of a file is recorded. Uploads that read an earlier version of it in place end: the bytes that they would go on
    /// with are not the file's any more, and their source may be released under the new version's record before they look at it
    /// again. One that runs finds out by its state.
    ///
    /// - Parameter identity: Of the new version.
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

    /// The source of an asset that is uploaded in place has another ctime, and was found to have the same content.
    package func proven(_ asset: Int64, changed: Int64) async throws {
        try await change { connection in
            try connection.run(
                "UPDATE asset SET changed = ?2 WHERE id = ?1 AND keeping = 'in-place'",
                [.integer(asset), .integer(changed)])
        }
    }

    /// An upload begins at its first byte, under another generation: what the remote has of the version before is removed there.
    func forgetProgress(of upload: UploadRecord) throws {
        if let old = try checkpoint(upload.id) {
            try removeRemains(of: upload, old, isEarlier: true)
            // Names that are made of the id must not be those of what is removed.
            try connection.run(
                "UPDATE upload SET generation = generation + 1, attempt = 0 WHERE id = ?1", [.text(upload.id)])
        }
        try connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        try connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(upload.id)])
        try forgetName(of: upload.id)
    }
}
