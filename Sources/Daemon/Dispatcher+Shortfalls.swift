internal import Config
internal import Core
internal import Store

// What waits until its quotas leave enough for the next piece of its file.

/// What an upload lacked when it was its turn.
struct Shortfall: Sendable {
    /// Whose quotas have to leave `bytes`.
    var kind: QuotaBook.Class
    var bytes: Int64
}

extension Dispatcher {
    /// A wait for a quota ends with its stretch by itself, and before that as soon as there is enough: others took less than they had
    /// reserved, or a person has changed the rules.
    func wakeWhatWasShort() async throws {
        guard let short else {
            // Those of an earlier run: the rules may be others, and what was reserved then is not.
            try await house.store.forgetWaits(becauseOf: Failure.shortOfQuota)
            self.short = [:]
            return
        }
        if short.isEmpty { return }
        let book = house.ledger.book
        let enough = short.filter { id, one in
            let isExcused =
                one.kind.folder.map { origin($0).excused.contains(.quota) } ?? false
                || excusedUploads.contains { $0.id == id && $0.excuses.contains(.quota) }
            return isExcused || book.room(for: one.kind).bytes.map { $0 >= one.bytes } ?? true
        }
        // No more than may go now: what the first of them take is not there for the rest.
        let ids = enough.keys.sorted().prefix(max(1, house.settings.policy.total))
        if ids.isEmpty { return }
        for id in ids { self.short?[id] = nil }
        try await house.store.forgetWaits(of: Array(ids))
    }

    func noteShortfall(_ outcome: AttemptOutcome, _ upload: UploadRecord) {
        guard case .held(let failure, _, _, _) = outcome, failure.code == Failure.shortOfQuota,
            let account = Lane.current?.accounts[upload.id], let bytes = account.lacked
        else {
            short?[upload.id] = nil
            return
        }
        short?[upload.id] = Shortfall(kind: account.kind, bytes: bytes)
    }
}
