internal import Config
internal import Core
internal import Store

// Uploads that wait until their quotas leave enough for the next piece of their file.

/// The bytes that an upload lacked when it was its turn.
struct QuotaWait: Sendable {
    /// The class whose quotas have to leave `bytes`.
    var kind: QuotaState.Class
    var bytes: Int64
}

extension Scheduler {
    /// The hold on an upload that can never be sent under its present quotas; `nil` where it can, or where a person
    /// waived them. An upload that has begun continues with the pieces it was cut into, and for those only the bytes
    /// that it lacked are known.
    func neverHold(of upload: UploadRecord, size: Int64) -> Hold? {
        let name = upload.destination
        guard let piece = piece(of: upload.id, isBegun: upload.isBegun, size: size, to: name),
            let line = quota(neverLeaving: piece, to: name, from: origin(upload.folder, of: upload.id))
        else { return nil }
        return Hold(
            .quota, since: upload.createdAt,
            text: line.never(piece, to: name, isWhole: !upload.isBegun && piece.bytes >= size))
    }

    func piece(of id: String, isBegun: Bool, size: Int64, to destination: String) -> UncutPiece? {
        isBegun
            ? short?[id].map { UncutPiece(costing: $0.bytes) }
            : house.destinations[destination]?.uncutPiece(ofSize: size)
    }

    private func quota(
        neverLeaving piece: UncutPiece, to destination: String, from origin: Admission.FolderState
    ) -> QuotaState.Line? {
        let book = house.ledger.book
        // Called for each upload in a list: most have no such quota.
        guard book.lines.contains(where: { $0.neverLeaves(piece.cost) }),
            !origin.exempt.contains(.quota)
        else { return nil }
        return kind(of: origin, to: destination).flatMap { book.neverLeaves(piece.cost, for: $0) }
    }

    /// The class that quotas count uploads under; `nil` for bytes that stay on this machine.
    private func kind(of origin: Admission.FolderState, to destination: String) -> QuotaState.Class? {
        let isMetered: Bool
        switch admission.way(to: remote(destination), from: origin, in: inputs) {
        case .open(let route) where route.ledger == .local: return nil
        case .open(let route): isMetered = route.countsAsMetered
        case .closed(_, let countsAsMetered): isMetered = countsAsMetered
        }
        return QuotaState.Class(destination, from: origin.name, isMetered: isMetered)
    }

    /// The listed uploads that wait and can never be sent under their quotas: for each folder and destination their
    /// number, and the reason.
    func neverGoing(_ backlog: [Store.Backlog]) -> [(folder: String, destination: String, files: Int, text: String)] {
        backlog.compactMap { waiting in
            var found: (files: Int, text: String) = (0, "")
            for upload in waiting.first {
                guard
                    let piece = piece(
                        of: upload.id, isBegun: upload.isBegun, size: upload.size, to: waiting.destination),
                    let line = quota(
                        neverLeaving: piece, to: waiting.destination, from: origin(waiting.folder, of: upload.id))
                else { continue }
                if found.files == 0 {
                    found.text = line.never(
                        piece, to: waiting.destination, isWhole: !upload.isBegun && piece.bytes >= upload.size)
                }
                found.files += 1
            }
            return found.files == 0 ? nil : (waiting.folder, waiting.destination, found.files, found.text)
        }
    }

    /// Wakes uploads that wait for a quota. The wait ends by itself with the quota's period. It ends before that as
    /// soon as enough is left: others used less than they had reserved, or a person has changed the rules.
    func wakeWhatWasShort() async throws {
        guard let short else {
            // Waits of an earlier run end: the rules may have changed, and the reservations of that run are gone.
            try await house.store.forgetWaits(becauseOf: Failure.shortOfQuota)
            self.short = [:]
            return
        }
        if short.isEmpty { return }
        let book = house.ledger.book
        let enough = short.filter { id, one in
            let isExempt =
                one.kind.folder.map { origin($0).exempt.contains(.quota) } ?? false
                || excusedUploads.contains { $0.id == id && $0.exemptions.contains(.quota) }
            return isExempt || book.room(for: one.kind).bytes.map { $0 >= one.bytes } ?? true
        }
        // No more than can run now: the bytes that the first of them use are not available to the rest.
        let ids = enough.keys.sorted().prefix(max(1, house.settings.policy.total))
        if ids.isEmpty { return }
        for id in ids {
            self.short?[id] = nil
            if excusedUploads.contains(where: { $0.id == id && $0.exemptions.contains(.quota) }) {
                shortAndExcused.insert(id)
            }
        }
        try await house.store.forgetWaits(of: Array(ids))
    }

    /// Whether the upload may be sent without its own excuse, and so in its turn.
    func goesInTurn(_ upload: UploadRecord, without exemptions: Set<Exemption>) -> Bool {
        if exemptions.contains(.quota), lacksRoom(upload) { return false }
        let verdict = admission.verdict(for: remote(upload.destination), from: origin(upload.folder), in: inputs)
        if case .go = verdict { return true }
        return false
    }

    /// Whether its quotas leave too little for its next piece, though they are not used up.
    private func lacksRoom(_ upload: UploadRecord) -> Bool {
        if shortAndExcused.contains(upload.id) { return true }
        let name = upload.destination
        guard let piece = piece(of: upload.id, isBegun: upload.isBegun, size: upload.missing, to: name),
            let kind = kind(of: origin(upload.folder, of: upload.id), to: name),
            let room = house.ledger.book.room(for: kind).bytes
        else { return false }
        return room < piece.cost
    }

    func noteShortfall(_ outcome: AttemptOutcome, _ upload: UploadRecord) {
        shortAndExcused.remove(upload.id)
        guard case .held(let failure, _, _, _) = outcome, failure.code == Failure.shortOfQuota,
            let account = TransferPermit.current?.accounts[upload.id], let bytes = account.lacked
        else {
            short?[upload.id] = nil
            return
        }
        short?[upload.id] = QuotaWait(kind: account.kind, bytes: bytes)
    }
}
