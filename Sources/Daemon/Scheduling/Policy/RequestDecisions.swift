internal import Core

// Decisions about requests besides transfers.

extension PolicySnapshot {
    /// The route of a request, or the hold on it.
    ///
    /// - Parameter account: The destination or hook that pays for it.
    func route(for purpose: RequestPurpose, at account: String) -> Result<Admission.Route, RequestHeldError> {
        let destination = destination(account, for: purpose)
        var first: Hold?
        for origin in origins(of: purpose) {
            let blockers = blockers(on: destination, from: origin, purpose, isUnderWay: false)
            if let hold = blockers.lastEnding {
                first = first ?? hold
                continue
            }
            switch routeDecision(to: destination, from: origin, purpose) {
            case .open(let route):
                guard let hold = shortage(for: purpose, at: account, from: origin, over: route) else {
                    return .success(route)
                }
                first = first ?? hold
            case .closed(let holds, _): first = first ?? holds.lastEnding
            }
        }
        return .failure(
            RequestHeldError(hold: first ?? Hold(.offline, since: inputs.now, text: "no route is available")))
    }

    /// The hold by quotas that are not used up, and leave too little for any connection of a program.
    private func shortage(
        for purpose: RequestPurpose, at account: String, from origin: Admission.FolderState?,
        over route: Admission.Route
    ) -> Hold? {
        if !purpose.isOfProgram || route.ledger == .local || origin?.exempt.contains(.quota) ?? false { return nil }
        let remaining = inputs.quotas.remaining(
            for: QuotaState.Class(account, from: purpose.folder, route.applied.quotas))
        guard let left = remaining.bytes, left < QuotaAccount.minRequest, let line = remaining.binding else {
            return nil
        }
        return Hold(
            .quota, since: inputs.now, until: line.stretch?.upperBound,
            text: "the quota of \(line.place.words) (\(line.quota.byteWords ?? "")) leaves \(shownBytes(left)), "
                + "too little for a connection of a program")
    }

    /// The hold on a request that would be sent now; `nil` when there is none.
    func hold(on purpose: RequestPurpose, at account: String) -> Hold? {
        switch route(for: purpose, at: account) {
        case .success: nil
        case .failure(let held): held.hold
        }
    }

    /// The rules that apply to a request that is running; or the hold on it, where it may not continue.
    func presentRules(
        of request: BackgroundRequests.BackgroundRequest
    ) -> Result<AppliedRules, RequestHeldError> {
        if request.purpose.network == .any { return .success(AppliedRules()) }
        let destination = destination(request.account, for: request.purpose)
        var first: Hold?
        for origin in origins(of: request.purpose) {
            let blockers = blockers(on: destination, from: origin, request.purpose, isUnderWay: true)
            if let hold = blockers.lastEnding {
                first = first ?? hold
                continue
            }
            if let same = reached(destination, over: request.route),
                case .open(let present) = routeDecision(to: same, from: origin, request.purpose),
                present.isSame(as: request.route)
            {
                return .success(present.applied)
            }
            first = first ?? Hold(.offline, since: inputs.now, text: "its route is not available any more")
        }
        return first.map { .failure(RequestHeldError(hold: $0)) } ?? .success(AppliedRules())
    }

    /// The state of who pays for a request, reached as the request is sent.
    private func destination(_ account: String, for purpose: RequestPurpose) -> Admission.DestinationState {
        var state = destination(account)
        if case .connection(let place, _) = purpose {
            let reached = network.routes[place]
            state.reachability = reached?.reachability ?? .unseen(Admission.notExamined)
            if let reached { state.reachabilitySince = reached.since }
        }
        return state
    }

    /// The files that a request is sent for: it may be sent if it may be for one of them. `nil` for no folder.
    private func origins(of purpose: RequestPurpose) -> [Admission.FolderState?] {
        switch purpose {
        case .space(let files): files.sorted().map { folder($0) }
        case .program(let name?), .connection(_, let name?): [folder(name)]
        case .removal, .notice, .command, .program, .connection: [nil]
        }
    }

    private func blockers(
        on destination: Admission.DestinationState, from origin: Admission.FolderState?, _ purpose: RequestPurpose,
        isUnderWay: Bool
    ) -> [Hold] {
        if purpose.network == .any { return [] }
        // A request begins no file.
        return hardBlockers(on: destination, from: origin, isUnderWay: isUnderWay).filter { !$0.holdsOnlyNewUploads }
    }

    private func routeDecision(
        to destination: Admission.DestinationState, from origin: Admission.FolderState?, _ purpose: RequestPurpose
    ) -> Admission.RouteDecision {
        var origin = origin
        if purpose.network == .any {
            origin = Admission.FolderState(name: destination.name, exempt: Set(Exemption.kinds))
        }
        return routeDecision(to: destination, from: origin)
    }
}
