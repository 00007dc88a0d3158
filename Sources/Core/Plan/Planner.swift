/// Simulates a backlog over time for a ``Plan``.
///
/// Between two evaluations the policy does not change. The next evaluation is due when a window, a limit, a quota or a
/// pause changes. Running uploads share the rate, so the next event is known, and the clock moves there in one step.
struct Planner {
    let input: Plan.Input
    let ended: (Plan.Ended) -> Void
    let start: WallTime
    /// The end of the plan, and the end of looking ahead.
    let mark: WallTime
    let horizon: WallTime
    var inputs: Admission.PolicyInputs
    var remotes: [Admission.DestinationState]
    var origins: [Admission.FolderState]
    var queues: [PlannedQueue]
    /// Number of running uploads of each queue. Read far more often than it changes.
    var counts: [Int]
    /// Queues that are not finished.
    var unfinished = 0
    /// Milliseconds since the start.
    var clock = 0.0
    var steps: [Plan.Step] = []
    var isRecording = true
    var isCut = false
    /// The policy has to be evaluated again.
    var isDue = true
    var evaluations = 0
    /// The previous evaluation: since then each queue has waited for the holds that were found then.
    var lastEvaluation: WallTime
    var turn = 0
    var lastStep: Int64 = 0
    /// The destination to which the last upload was begun.
    var lastServed: Int
    /// When a timetable changes next, if that was computed.
    var timetable: (asked: Bool, at: WallTime?) = (false, nil)
    var boundary: WallTime?
    /// Number of running uploads of each queue when the speeds were shared.
    var shared: [Int] = []
    var caps: [PlanShares.Cap] = []
    let countsFiles: Bool
    let countsReceived: Bool
    /// The queues that each quota counts.
    var counted: [[Int]] = []

    init(_ question: Plan.Input, ended: @escaping (Plan.Ended) -> Void) {
        self.input = question
        self.ended = ended
        start = question.inputs.now
        let far = start.advanced(by: Plan.longest)
        mark = min(max(question.until ?? far, start), start.advanced(by: Plan.furthest))
        horizon = max(far, mark)
        inputs = question.inputs
        lastEvaluation = start
        inputs.quotas.releaseReservations(at: start)
        remotes = question.remotes
        origins = question.origins
        lastServed = remotes.count - 1
        countsFiles = inputs.quotas.lines.contains { $0.quota.files != nil }
        countsReceived = inputs.quotas.lines.contains { $0.quota.direction != .sent }
        queues = question.queues.map { queue in
            var rest = queue.rest
            rest.files = max(0, rest.files)
            rest.bytes = rest.files > 0 ? max(0, rest.bytes) : 0
            let listed = queue.uploads.reduce(0.0) { $0 + Double(max(0, $1.left)) }
            return PlannedQueue(
                queue: queue, remote: question.remotes.firstIndex { $0.name == queue.destination },
                origin: question.origins.firstIndex { $0.name == queue.folder }, rest: rest,
                piece: max(1, (rest.files + Plan.pieces - 1) / Plan.pieces),
                files: Int64(queue.uploads.count) + rest.files, bytes: listed + Double(rest.bytes))
        }
        counts = queues.map { _ in 0 }
        unfinished = queues.count { !$0.isOver }
        for number in queues.indices where queues[number].isOver { queues[number].ends = start }
    }

    var now: WallTime { start.advanced(by: .milliseconds(Int64(clock))) }
    var running: Int { counts.reduce(0, +) }

    mutating func plan() -> Plan {
        addRunning()
        var events = 0
        while now < horizon, unfinished > 0 {
            events += 1
            if events > Plan.maxEvents || evaluations >= Plan.maxEvaluations || steps.count >= Plan.maxSteps {
                isCut = isRecording
                break
            }
            if isDue { evaluate() }
            fill()
            if isDue { continue }
            share()
            advance()
        }
        let last = isCut ? max(start, now) : mark
        if isRecording { close(at: last) }
        return Plan(
            from: start, until: last, steps: steps.sorted { ($0.from, $0.to) < ($1.from, $1.to) },
            outcomes: queues.indices.map { outcome(of: $0) }, isCut: isCut)
    }

    /// An upload that is being sent now keeps its slot, regardless of the others.
    mutating func addRunning() {
        evaluate()
        for number in queues.indices {
            while queues[number].next < queues[number].queue.uploads.count,
                queues[number].queue.uploads[queues[number].next].isUnderWay, mayContinue(queues[number])
            { begin(number, isUnderWay: true) }
            // A begun upload continues, also where no new one may begin.
            let uploads = queues[number].queue.uploads
            for place in uploads.indices.dropFirst(queues[number].next) where uploads[place].isBegun {
                queues[number].returned.append(Item(uploads[place], at: place))
            }
            queues[number].hasCollectedBegun = true
            queues[number].skipBegun()
        }
        isDue = true
    }

    // MARK: Permission to send

    /// Evaluates the policy for each queue, and stops uploads that may not continue.
    mutating func evaluate() {
        isDue = false
        evaluations += 1
        let now = now
        lastEvaluation = inputs.now
        inputs.now = now
        if let until = inputs.everything?.until, until <= now { inputs.everything = nil }
        if let until = inputs.globalStop?.until, until <= now { inputs.globalStop = nil }
        if let until = inputs.clockTrouble?.until, until <= now {
            inputs.clockTrouble = nil
            timetable.asked = false
        }
        for number in remotes.indices {
            if let end = remotes[number].pause?.until, end <= now { remotes[number].pause = nil }
        }
        for number in origins.indices {
            if let end = origins[number].pause?.until, end <= now { origins[number].pause = nil }
        }
        for recount in inputs.quotas.advance(to: now, in: inputs.zone) {
            // A plan knows nothing of usage that was not read yet.
            inputs.quotas.recount(recount, spent: .none, at: now)
        }
        for number in queues.indices where !queues[number].isOver { evaluate(at: number) }
        counted = inputs.quotas.lines.map { line in
            queues.indices.filter { number in queues[number].kind.map { line.counts($0) } ?? false }
        }
        limit()
        shared = []
        setBoundary()
    }

    mutating func evaluate(at number: Int) {
        settleIdle(number)
        let queue = queues[number].queue
        guard let remote = queues[number].remote.map({ remotes[$0] }) else {
            queues[number].holds = [
                Hold(.destination, since: start, text: "destination \(queue.destination) is not in the configuration")
            ]
            return
        }
        let origin = origin(of: queues[number])
        queues[number].holds = input.admission.holds(for: remote, from: origin, in: inputs)
        func kind(_ applied: AppliedRules) -> QuotaState.Class {
            QuotaState.Class(queue.destination, from: queue.folder, applied.quotas)
        }
        switch input.admission.routeDecision(to: remote, from: origin, in: inputs) {
        case .open(let route):
            queues[number].route = route
            queues[number].kind = route.ledger == .local ? nil : kind(route.applied)
            queues[number].classWhenOpen = queues[number].kind
        case .closed(_, let applied): queues[number].classWhenOpen = kind(applied)
        }
        returnShort(number)
        holdWithoutSpeed(number)
        if queues[number].holds.isEmpty { return }
        if !queues[number].running.isEmpty, !mayContinue(queues[number]) { stop(number) }
        if queues[number].running.isEmpty { finish(number, .held(queues[number].reasons)) }
    }

    /// The folder of a queue, with its present exemptions.
    func origin(of queue: PlannedQueue) -> Admission.FolderState {
        var origin = queue.origin.map { origins[$0] } ?? Admission.FolderState(name: queue.queue.folder)
        origin.file = queue.queue.file
        origin.exempt = Set(queue.queue.grants.filter { $0.until > inputs.now }.map(\.exemption))
        return origin
    }

    /// Whether a begun upload may continue where no new one may begin.
    func mayContinue(_ queue: PlannedQueue) -> Bool {
        if queue.holds.isEmpty { return true }
        guard let remote = queue.remote.map({ remotes[$0] }), input.rates.isKnown(for: remote.name) else {
            return false
        }
        let origin = origin(of: queue)
        guard input.admission.hardBlockers(on: remote, from: origin, in: inputs, isUnderWay: true).isEmpty else {
            return false
        }
        if origin.exempt.contains(.quota) { return true }
        return queue.kind.map { inputs.quotas.remaining(for: $0).bytes != 0 } ?? true
    }

    mutating func stop(_ number: Int) {
        for var item in queues[number].running {
            countInFileQuotas(&item)
            queues[number].returned.append(item)
        }
        queues[number].running = []
        counts[number] = 0
        queues[number].returned.sort { $0.place < $1.place }
    }

    /// It counts in the quotas of files from now on.
    mutating func countInFileQuotas(_ item: inout Item) {
        if item.step != 0 { inputs.quotas.close(item.step, Spending(files: item.files), at: now) }
        (item.step, item.hasPlace) = (0, true)
    }

    /// When the policy has to be evaluated again, although no quota is used up.
    mutating func setBoundary() {
        if !timetable.asked || timetable.at.map({ $0 <= inputs.now }) ?? false {
            var (quiet, still, mute) = (inputs, remotes, origins)
            quiet.quotas = QuotaState(policy: PolicyRules())
            (quiet.everything, quiet.globalStop) = (nil, nil)
            quiet.clockTrouble?.until = nil
            for number in still.indices { still[number].pause = nil }
            for number in mute.indices { mute[number].pause = nil }
            timetable = (true, input.admission.nextChange(still, mute, in: quiet))
        }
        let pauses =
            [inputs.everything?.until, inputs.globalStop?.until, inputs.clockTrouble?.until]
            + (remotes.map(\.pause) + origins.map(\.pause)).map { $0?.until }
        // A quota is renewed at the end of its period, also where it is not used up.
        let stretches = inputs.quotas.lines.map { $0.stretch?.upperBound }
        let words = input.limits.map(\.until) + queues.flatMap { $0.queue.grants.map(\.until) }
        boundary = ([timetable.at] + pauses + stretches + words).compactMap { $0 }.filter { $0 > inputs.now }.min()
    }

    // MARK: Starting uploads

    /// Gives free slots to uploads that may be sent: destinations take turns, and so do folders of one priority.
    mutating func fill() {
        // The destination that was served last is tried last.
        let order = remotes.indices.map { (lastServed + 1 + $0) % remotes.count }
        var isGiven = true
        while isGiven && !isDue {
            isGiven = false
            for number in order {
                guard let queue = next(to: number) else { continue }
                lastServed = number
                if begin(queue) { isGiven = true }
                if isDue { return }
            }
        }
    }

    func next(to remote: Int) -> Int? {
        var count = 0
        for number in queues.indices where counts[number] > 0 && queues[number].remote == remote {
            count += counts[number]
        }
        guard input.admission.free(for: remotes[remote], running: count, inAll: running) > 0 else { return nil }
        var best: (queue: Int, rank: (Int, Int))?
        for number in queues.indices
        where queues[number].remote == remote && queues[number].mayBegin {
            let rank = (-queues[number].priority, queues[number].lastTurn)
            if best.map({ rank < $0.rank }) ?? true, hasSlot(number) { best = (number, rank) }
        }
        return best?.queue
    }

    func hasSlot(_ queue: Int) -> Bool {
        for slots in queues[queue].route.applied.slots {
            var count = 0
            for number in queues.indices
            where counts[number] > 0 && queues[number].route.applied.slots.contains(slots) { count += counts[number] }
            if count >= slots.rule.atMost { return false }
        }
        let folder = queues[queue].queue.folder
        guard let most = input.folderSlots[folder] else { return true }
        var count = 0
        for number in queues.indices where counts[number] > 0 && queues[number].queue.folder == folder {
            count += counts[number]
        }
        return count < most
    }

    /// - Parameter isUnderWay: It has its slot and its reservation.
    /// - Returns: Whether it filled a slot, or has to be called again.
    @discardableResult
    mutating func begin(_ number: Int, isUnderWay: Bool = false) -> Bool {
        guard var item = dequeue(number) else { return false }
        if isUnderWay {
            resumePiece(&item, number)
        } else if !grant(&item, number) {
            blockOnQuota(item, number)
            if queues[number].running.isEmpty, !queues[number].hasNext { finish(number, .held(queues[number].reasons)) }
            return true
        }
        turn += 1
        queues[number].lastTurn = turn
        if countsFiles, !item.hasPlace, let kind = queues[number].kind {
            lastStep += 1
            item.step = lastStep
            inputs.quotas.open(lastStep, Spending(files: item.files), for: kind, at: now)
            if inputs.quotas.remaining(for: kind).files == 0 { isDue = true }
        }
        queues[number].running.append(item)
        counts[number] += 1
        if queues[number].step == nil { queues[number].step = Stretch(from: now, to: now) }
        return true
    }

    /// The next of a queue: one upload, or as many of its rest as are sent together and as quotas of files allow.
    mutating func dequeue(_ number: Int) -> Item? {
        let uploads = queues[number].queue.uploads
        if !queues[number].returned.isEmpty { return queues[number].returned.removeFirst() }
        if !queues[number].quotaReleased.isEmpty { return queues[number].quotaReleased.removeFirst() }
        let next = queues[number].next
        if next < uploads.count {
            queues[number].next += 1
            queues[number].skipBegun()
            return Item(uploads[next], at: next)
        }
        let rest = queues[number].rest
        guard rest.files > 0 else { return nil }
        var files = min(rest.files, queues[number].piece)
        if countsFiles, let kind = queues[number].kind, let remaining = inputs.quotas.remaining(for: kind).files {
            files = max(1, min(files, remaining))
        }
        let bytes = files == rest.files ? rest.bytes : Int64(Int128(rest.bytes) * Int128(files) / Int128(rest.files))
        queues[number].rest = Spending(bytes: rest.bytes - bytes, files: rest.files - files)
        return Item(
            place: uploads.count, left: Double(bytes), files: files, priority: uploads.last?.priority ?? 0,
            piece: queues[number].queue.piece)
    }
}
