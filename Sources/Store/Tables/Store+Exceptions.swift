package import Core
internal import Linux

/// A temporary exception that a person has set.
package struct OverrideRecord: Sendable, Hashable {
    /// Open, since a newer program may have stored other scopes.
    package struct Scope: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        package static let all = Scope(rawValue: "all")
        package static let folder = Scope(rawValue: "folder")
        package static let upload = Scope(rawValue: "upload")
    }
    package enum Kind: Sendable, Hashable {
        case exemption(Exemption)
        /// At most this many bytes a second.
        case rate(Int64)
        /// A newer program has stored it. It has no effect here.
        case unknown(String)

        fileprivate init(_ word: String, value: Int64?) {
            self =
                if word == OverrideRecord.rate { .rate(value ?? 0) } else {
                    Exemption(rawValue: word).map { .exemption($0) } ?? .unknown(word)
                }
        }
    }

    package var scope: Scope
    /// The folder's name or the upload's id; empty for `all`.
    package var name: String
    package var kind: Kind
    package var since: WallTime
    package var until: WallTime
    /// The user who set it.
    package var who: String

    package init(scope: Scope, name: String, kind: Kind, since: WallTime, until: WallTime, who: String) {
        self.scope = scope
        self.name = name
        self.kind = kind
        self.since = since
        self.until = until
        self.who = who
    }

    /// Whether `other` is of the same kind for the same target, and so is replaced.
    package func isAbout(_ other: OverrideRecord) -> Bool {
        scope == other.scope && name == other.name && word == other.word
    }

    fileprivate static let rate = "rate"
    fileprivate var word: String {
        switch kind {
        case .exemption(let exemption): exemption.rawValue
        case .rate: Self.rate
        case .unknown(let word): word
        }
    }
}

extension Store {
    /// Replaces exceptions of the same kind for the same target. Durable when it returns.
    package func setExceptions(_ exceptions: [OverrideRecord]) async throws {
        try await change { connection in
            for exception in exceptions {
                var value: Int64?
                if case .rate(let rate) = exception.kind { value = rate }
                try connection.run(
                    "INSERT OR REPLACE INTO exception VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    [
                        .text(exception.scope.rawValue), .text(exception.name), .text(exception.word),
                        .integer(exception.since.milliseconds), .integer(exception.until.milliseconds),
                        .text(exception.who), .init(value),
                    ])
                try self.note(
                    "allowed", exception.scope == .upload ? exception.name : nil,
                    [
                        "scope": exception.scope.rawValue, "name": exception.name, "kind": exception.word,
                        "until": "\(exception.until)", "by": exception.who,
                    ])
            }
        }
    }

    /// - Returns: The number of them.
    @discardableResult
    package func clearExceptions(_ exceptions: [OverrideRecord]) async throws -> Int {
        if exceptions.isEmpty { return 0 }
        return try await change { connection in
            var count = 0
            for exception in exceptions {
                try connection.run(
                    "DELETE FROM exception WHERE scope = ?1 AND name = ?2 AND kind = ?3",
                    [.text(exception.scope.rawValue), .text(exception.name), .text(exception.word)])
                guard connection.changes > 0 else { continue }
                count += 1
                try self.note(
                    "allowed", exception.scope == .upload ? exception.name : nil,
                    [
                        "scope": exception.scope.rawValue, "name": exception.name, "kind": exception.word,
                        "until": "over",
                    ])
            }
            return count
        }
    }

    /// Removes the exceptions of an upload that has ended. Within a transaction.
    func endExceptions(of upload: String) throws {
        let kinds = try connection.all(
            "DELETE FROM exception WHERE scope = 'upload' AND name = ?1 RETURNING kind", [.text(upload)]
        ) { $0.text(0) }
        for kind in kinds {
            try note("allowed", upload, ["scope": "upload", "name": upload, "kind": kind, "until": "over"])
        }
    }

    /// All that are stored, also those that have ended.
    package func exceptions() throws -> [OverrideRecord] {
        try connection.all("SELECT scope, name, kind, since, until, who, value FROM exception") { row in
            OverrideRecord(
                scope: OverrideRecord.Scope(rawValue: row.text(0)), name: row.text(1),
                kind: OverrideRecord.Kind(row.text(2), value: row.optionalInteger(6)),
                since: WallTime(milliseconds: row.integer(3)), until: WallTime(milliseconds: row.integer(4)),
                who: row.text(5))
        }
    }

    /// Claims one upload for its destination, if it is queued and not paused, whatever stands before it in the queue.
    /// Otherwise as ``claim(filling:_:from:skippingDuplicatesOf:reserving:onRepeat:)``.
    ///
    /// - Parameter alike: Folders that skip duplicates: uploads from these are left to the ordinary claim.
    package func claim(
        only id: String, skippingDuplicatesOf alike: [String], reserving: @Sendable (Claim) -> Reservation?
    ) async throws -> Claim? {
        func next() throws -> (UploadRecord, AssetRecord)? {
            guard let upload = try self.upload(id), upload.state == .queued, upload.pausedAt == nil,
                upload.backoffUntil.map({ $0 <= clocks.monotonic() }) ?? true, !alike.contains(upload.folder),
                let asset = try self.asset(upload.asset)
            else { return nil }
            return (upload, asset)
        }
        // Checked outside a transaction first, so that an idle dispatcher writes nothing.
        guard try next() != nil else { return nil }
        return try await change { connection in
            guard let (upload, asset) = try next() else { return nil }
            try connection.run(
                "UPDATE upload SET lease_owner = ?2, leased_at = ?3, started_at = coalesce(started_at, ?3) WHERE id = ?1",
                [.text(upload.id), .text(self.owner), .integer(self.clocks.wall().milliseconds)])
            try self.move(upload, by: .claimed)
            var claim = Claim(
                upload: try self.upload(upload.id) ?? upload, asset: asset, checkpoint: try self.checkpoint(upload.id))
            claim.step = try reserving(claim).map { try self.open($0) }
            return claim
        }
    }
}
