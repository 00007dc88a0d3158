package import Core

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
    package var author: String

    package init(scope: Scope, name: String, kind: Kind, since: WallTime, until: WallTime, who: String) {
        self.scope = scope
        self.name = name
        self.kind = kind
        self.since = since
        self.until = until
        self.author = who
    }

    /// Whether `other` is of the same kind for the same target, and so is replaced.
    package func isAbout(_ other: OverrideRecord) -> Bool {
        scope == other.scope && name == other.name && word == other.word
    }

    fileprivate static let rate = "rate"
    /// Its kind, as it is stored and shown.
    var word: String {
        switch kind {
        case .exemption(let exemption): exemption.rawValue
        case .rate: Self.rate
        case .unknown(let word): word
        }
    }
}

/// Rows of `exception`: temporary exceptions that a person has set.
package struct OverrideTable<Access> {
    let tx: Transaction<Access>

    /// All that are stored, also those that have ended.
    package func all() throws -> [OverrideRecord] {
        try tx.connection.all("SELECT scope, name, kind, since, until, who, value FROM exception") { row in
            OverrideRecord(
                scope: OverrideRecord.Scope(rawValue: row.text(0)), name: row.text(1),
                kind: OverrideRecord.Kind(row.text(2), value: row.optionalInteger(6)),
                since: WallTime(milliseconds: row.integer(3)), until: WallTime(milliseconds: row.integer(4)),
                who: row.text(5))
        }
    }
}

extension OverrideTable where Access == Writing {
    /// Replaces exceptions of the same kind for the same target.
    package func set(_ exceptions: [OverrideRecord]) throws {
        for exception in exceptions {
            var value: Int64?
            if case .rate(let rate) = exception.kind { value = rate }
            try tx.connection.run(
                "INSERT OR REPLACE INTO exception VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                [
                    .text(exception.scope.rawValue), .text(exception.name), .text(exception.word),
                    .integer(exception.since.milliseconds), .integer(exception.until.milliseconds),
                    .text(exception.author), .init(value),
                ])
            try tx.events.append(.allowed(exception), of: exception.scope == .upload ? exception.name : nil)
        }
    }

    /// - Returns: The number of them.
    @discardableResult
    package func clear(_ exceptions: [OverrideRecord]) throws -> Int {
        if exceptions.isEmpty { return 0 }
        var count = 0
        for exception in exceptions {
            try tx.connection.run(
                "DELETE FROM exception WHERE scope = ?1 AND name = ?2 AND kind = ?3",
                [.text(exception.scope.rawValue), .text(exception.name), .text(exception.word)])
            guard tx.connection.changes > 0 else { continue }
            count += 1
            try tx.events.append(
                .allowedNoMore(exception.scope, name: exception.name, kind: exception.word),
                of: exception.scope == .upload ? exception.name : nil)
        }
        return count
    }

    /// Removes the exceptions of an upload that has ended.
    func end(of upload: String) throws {
        let kinds = try tx.connection.all(
            "DELETE FROM exception WHERE scope = 'upload' AND name = ?1 RETURNING kind", [.text(upload)]
        ) { $0.text(0) }
        for kind in kinds {
            try tx.events.append(.allowedNoMore(.upload, name: upload, kind: kind), of: upload)
        }
    }
}

extension Transaction {
    package var overrides: OverrideTable<Access> { OverrideTable(tx: self) }
}
