package import Core

// The remote's id for an upload before it is complete. It has its own column: `remote` holds only verified objects.

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

extension Store {
    /// Stores the remote's id for an upload that this run holds. Durable when it returns. The same id again writes
    /// nothing.
    ///
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile.
    package func name(_ remoteID: String, at url: String? = nil, for id: String) async throws {
        if let upload = try upload(id), upload.state == .uploading, upload.named == remoteID, upload.namedURL == url {
            return
        }
        try await whileHeld(id) { connection in
            try connection.run(
                "UPDATE upload SET named = ?2, named_url = ?3 WHERE id = ?1", [.text(id), .text(remoteID), .init(url)])
        }
    }

    /// Inside a transaction. The upload begins again at the remote, or will.
    func forgetName(of id: String) throws {
        try connection.run(
            "UPDATE upload SET named = NULL, named_url = NULL WHERE id = ?1 AND named IS NOT NULL", [.text(id)])
    }

    /// Records that the credential for an upload that this run holds was renewed. Durable when it returns.
    ///
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile.
    package func note(_ news: CredentialRenewal, for id: String) async throws {
        try await whileHeld(id) { _ in
            var detail = ["reason": news.reason.rawValue]
            detail["until"] = news.until?.description
            try self.note("credential", id, detail)
        }
    }

    private func whileHeld(_ id: String, _ body: @escaping (Connection) throws -> Void) async throws {
        let isHeld = try await change { connection in
            guard try self.upload(id)?.state == .uploading else { return false }
            try body(connection)
            return true
        }
        if !isHeld { throw LeaseLost() }
    }
}
