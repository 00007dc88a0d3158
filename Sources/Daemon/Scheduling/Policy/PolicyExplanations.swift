internal import Config
internal import Core
internal import Destinations
internal import Store

// Explanations of policy decisions for people: the hold, the turn, the limit and the quota of an upload.

extension PolicySnapshot {
    /// The holds on all uploads of a class.
    ///
    /// - Parameter upload: One of the uploads, which may have an exemption of its own.
    func holds(on one: UploadClass, upload: String? = nil) -> [Hold] {
        holds(from: folder(one.files, exempting: upload.map { exemptions(of: $0) } ?? []), to: one.destination)
    }

    /// The holds on whatever a folder sends.
    func holds(folder: String, destination: String) -> [Hold] { holds(from: self.folder(folder), to: destination) }

    private func holds(from folder: Admission.FolderState, to destination: String) -> [Hold] {
        if configuration.destinations[destination] == nil {
            return [
                Hold(
                    .destination, since: configuration.since,
                    text:
                        "destination \(destination) is not in the configuration: add it again, or cancel these uploads "
                        + "with `sluice cancel --destination \(destination)`")
            ]
        }
        return holds(for: self.destination(destination), from: folder)
    }

    /// The obstacle for all uploads to a destination; `nil` when there is none.
    func hold(of destination: String) -> Hold? {
        guard var hold = holds(for: self.destination(destination), from: nil).first else {
            return capacityHold(of: destination)
        }
        if hold.kind.isOfDestination, let until = hold.until, until <= inputs.now {
            // Each waiting upload has a reason of its own not to be sent, so none of them tries the destination.
            hold.until = nil
            hold.text += "; the next permitted upload tries it"
        }
        return hold
    }

    /// The obstacle for all uploads from a folder; `nil` when there is none.
    func hold(ofFolder name: String) -> Hold? { hardBlockers(on: folder(name)).first }

    /// The hold on notices of a hook; `nil` when there is none.
    func hold(of hook: Hook) -> Hold? {
        hold(
            on: hook.target.isPolicedProgram ? ProgramPayer.hook(hook.name).purpose : .notice(hook.network),
            at: Hook.account(hook.name))
    }

    /// Whether any upload may be sent to a destination. An upload that waits for space there leaves it open for smaller
    /// ones.
    func isOpen(_ destination: String) -> Bool {
        holds(for: self.destination(destination), from: nil).isEmpty
    }

    /// The hold on the next upload there that does not fit; smaller uploads are sent.
    func capacityHold(of destination: String) -> Hold? { destinations.capacityHold(of: destination) }

    /// Whether a destination is a folder on a disk of this machine.
    func isFolderHere(_ name: String) -> Bool {
        configuration.destinations[name]?.site.isFolder == true && network.routes[name]?.reachability == .local
    }

    /// The interface of each destination, where it is known and fixed.
    var interfaces: [String: String] { network.interfaces.filter { configuration.destinations[$0.key] != nil } }

    /// When an upload of this class without holds will be sent, in words that form a sentence of their own.
    func queueSentence(of destination: String, _ files: FileClass) -> String {
        let folder = files.folder
        if fullFolders.contains(folder) {
            return "it waits for its turn: folder \(folder) has reached its limit of transfers"
        }
        if let slots = ConditionalSlots(to: destination, from: [files], self).rules[files] {
            return "it waits for its turn: \(slots.words)"
        }
        switch verdict(for: destination) {
        case .go where destinations.isQueryingCapacity(destination):
            return "it starts when \(destination) has reported its free space"
        case .go: return "it starts next"
        case .busy:
            let state = self.destination(destination)
            return state.running >= state.slots
                ? "it waits for its turn: \(state.running) of \(state.slots) transfers to \(destination) are running"
                : "it waits for its turn: \(transfers.count) of \(settings.policy.total) transfers are running"
        case .wait(let holds): return holds.first?.text ?? "it waits"
        }
    }

    /// The limit in bytes a second that slows an upload down most; `nil` where there is none.
    func slowest(of id: String, to destination: String, from folder: String) -> (what: String, rate: Int64)? {
        let places = [
            ("policy", settings.policy.rules),
            ("destinations.\(destination)", self.destination(destination).rules),
            ("folder \(folder)", self.folder(folder).rules),
        ]
        var limits = places.compactMap { place, rules in
            rules.limit(in: inputs).map { (what: "the bandwidth of \(place)", rate: $0) }
        }
        if let limit = overrides.rateLimit(at: inputs.now) { limits.append(("`sluice limit`", limit)) }
        if let transfer = transfers.carrying(id) {
            limits += (appliedRules(to: transfer)[id]?.rates ?? []).compactMap { rate in
                rate.rule.limit.map { ("the bandwidth of \(rate.place.words)\(rate.rule.condition)", $0) }
            }
        }
        return limits.min { $0.rate < $1.rate }
    }

    // MARK: Quotas

    /// The hold on an upload that can never be sent under its present quotas; `nil` where it can, or where a person
    /// exempted it from them. An upload that has begun continues with the pieces it was cut into, and for those only
    /// the bytes that it lacked are known.
    func permanentHold(of upload: UploadRecord, size: Int64) -> Hold? {
        let name = upload.destination
        guard let piece = piece(of: upload.id, isBegun: upload.isBegun, size: size, to: name),
            let line = quota(neverLeaving: piece, to: name, from: folder(of: upload))
        else { return nil }
        return Hold(
            .quota, since: upload.createdAt,
            text: line.neverSentText(piece, to: name, isWhole: !upload.isBegun && piece.bytes >= size))
    }

    /// The listed uploads that wait and can never be sent under their quotas: for each folder and destination their
    /// number, and the reason.
    func permanentlyBlocked(_ backlog: [ClassBacklog]) -> [(
        folder: String, destination: String, files: Int, text: String
    )] {
        backlog.compactMap { waiting in
            var found: (files: Int, text: String) = (0, "")
            for upload in waiting.first {
                guard
                    let piece = piece(
                        of: upload.id, isBegun: upload.isBegun, size: upload.size, to: waiting.destination),
                    let line = quota(
                        neverLeaving: piece, to: waiting.destination,
                        from: folder(waiting.one.files, exempting: exemptions(of: upload.id)))
                else { continue }
                if found.files == 0 {
                    found.text = line.neverSentText(
                        piece, to: waiting.destination, isWhole: !upload.isBegun && piece.bytes >= upload.size)
                }
                found.files += 1
            }
            return found.files == 0 ? nil : (waiting.folder, waiting.destination, found.files, found.text)
        }
    }

    /// Whether the quotas of an upload leave too little for its next piece, though they are not used up.
    func lacksQuota(_ upload: UploadRecord) -> Bool {
        if quotaWaits.wasExempted(upload.id) { return true }
        let name = upload.destination
        guard let piece = piece(of: upload.id, isBegun: upload.isBegun, size: upload.missing, to: name),
            let kind = quotaClass(of: folder(of: upload), to: name),
            let remaining = inputs.quotas.remaining(for: kind).bytes
        else { return false }
        return remaining < piece.cost
    }

    private func piece(of id: String, isBegun: Bool, size: Int64, to destination: String) -> IndivisibleRequest? {
        isBegun
            ? quotaWaits[id].map { IndivisibleRequest(costing: $0.bytes) }
            : configuration.destinations[destination]?.uncutPiece(ofSize: size)
    }

    private func quota(
        neverLeaving piece: IndivisibleRequest, to destination: String, from folder: Admission.FolderState
    ) -> QuotaState.Line? {
        // Called for each upload in a list: most have no such quota.
        guard inputs.quotas.lines.contains(where: { $0.neverAllows(piece.cost) }), !folder.exempt.contains(.quota)
        else { return nil }
        return quotaClass(of: folder, to: destination).flatMap { inputs.quotas.lineTooSmall(piece.cost, for: $0) }
    }

    /// The class of an upload now, which may not be the one that it waited in: other conditions may hold by now.
    func presentClass(of id: String, _ wait: QuotaWait) -> QuotaState.Class {
        guard let name = wait.kind.folder else { return wait.kind }
        var folder = folder(name, wait.file)
        folder.exempt.formUnion(exemptions(of: id))
        return quotaClass(of: folder, to: wait.kind.destination) ?? wait.kind
    }

    /// The class that quotas count uploads under; `nil` for bytes that stay on this machine.
    func quotaClass(of folder: Admission.FolderState, to destination: String) -> QuotaState.Class? {
        let applied: AppliedRules
        switch route(to: destination, from: folder) {
        case .open(let route) where route.ledger == .local: return nil
        case .open(let route): applied = route.applied
        case .closed(_, let rules): applied = rules
        }
        return QuotaState.Class(destination, from: folder.name, applied.quotas)
    }
}

extension DestinationTracker.Fault {
    /// The configuration key that determines when a held destination is tried again, for people.
    ///
    /// - Parameter keys: The keys of its credentials.
    func rule(of name: String, _ keys: [String]) -> String? {
        switch remedy {
        case .holdDestination(nil):
            let most = DestinationHealth.longestProbeWait
            let longest = retry.ceiling > most ? ", \(writtenTime(most)) apart at most" : ""
            return "the next attempt follows `\(retry.written)`\(longest)"
        case .outOfSpace(nil):
            let backoff = DestinationHealth.backoffWhenFull(retry)
            return
                "the next attempt waits for \(writtenTime(backoff.first)) at first, \(writtenTime(backoff.ceiling)) at most "
                + "(`\(retry.written)`)"
        case .rateLimit(nil), .misconfigured: return "the next attempt follows `\(retry.written)`"
        case .holdDestination where failure.explainsWait == true: return nil
        case .holdDestination, .outOfSpace, .rateLimit: return "the destination set the time of the next attempt"
        case .authenticate:
            let again = "every \(writtenTime(DestinationHealth.credentialRetryWait))"
            if keys.isEmpty { return "it is tried again \(again)" }
            let named = keys.map { "`\($0)`" }.joined(separator: ", ")
            return "\(named) of destinations.\(name) \(keys.count == 1 ? "is" : "are") read again \(again)"
        case .retry, .refused, .pending, .lackQuota, .restage, .failUpload: return nil
        }
    }
}
