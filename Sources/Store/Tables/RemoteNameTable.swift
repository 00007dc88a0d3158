internal import Core

extension Schema {
    static let named = """
        ALTER TABLE upload ADD COLUMN named TEXT;   -- what the remote calls it, where it said so before the end
        CREATE INDEX upload_named ON upload (named) WHERE named IS NOT NULL;
        """
    static let namedAddress = """
        ALTER TABLE upload ADD COLUMN named_url TEXT;   -- where a person finds that
        CREATE INDEX upload_named_url ON upload (named_url) WHERE named_url IS NOT NULL;
        """
}

/// The columns `named` and `named_url` of `upload`: the remote's id for an upload before it is complete. `remote` holds
/// only verified objects.
package struct RemoteNameTable<Access> {
    let tx: Transaction<Access>

    func isStored(_ remoteID: String, at url: String?, of id: String) throws -> Bool {
        guard let upload = try tx.uploads.find(id), upload.state == .uploading else { return false }
        return upload.named == remoteID && upload.namedURL == url
    }
}

extension RemoteNameTable where Access == Writing {
    /// - Returns: Whether this run still holds the upload.
    func set(_ remoteID: String, at url: String?, of id: String) throws -> Bool {
        guard try tx.uploads.find(id)?.state == .uploading else { return false }
        try tx.connection.run(
            "UPDATE upload SET named = ?2, named_url = ?3 WHERE id = ?1", [.text(id), .text(remoteID), .init(url)])
        return true
    }

    /// The upload begins again at the remote, or will.
    func clear(of id: String) throws {
        try tx.connection.run(
            "UPDATE upload SET named = NULL, named_url = NULL WHERE id = ?1 AND named IS NOT NULL", [.text(id)])
    }
}

extension Transaction {
    package var remoteNames: RemoteNameTable<Access> { RemoteNameTable(tx: self) }
}
