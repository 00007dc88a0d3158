/// Simulates a backlog over time for a ``Plan``.
///
/// Between two evaluations the policy does not change. The next evaluation is due when a window, a limit, a quota or a
/// pause changes. Running uploads share the rate, so the next event is known, and the clock moves there in one step.
struct Planner {
    let question: Plan.Question
    let ended: (Plan.Ended) -> Void
    let start: WallTime
    /// The end of the plan, and the end of looking ahead.
    let mark: WallTime
    let horizon: WallTime
    var world: Admission.World
    var remotes: [Admission.Remote]
    var origins: [Admission.Origin]
    var lanes: [Lane]
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
    var looks = 0
    /// The previous evaluation: since then each queue has waited for the holds that were found then.
    var looked: WallTime
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

    init(_ question: Plan.Question, ended: @escaping (Plan.Ended) -> Void) {
        self.question = question
        self.ended = ended
        start = question.world.now
        let far = start.advanced(by: Plan.longest)
        mark = min(max(question.until ?? far, start), start.advanced(by: Plan.furthest))
        horizon = max(far, mark)
        world = question.world
        looked = start
        world.quotas.giveBackReserved(at: start)
        remotes = question.remotes
        origins = question.origins
        lastServed = remotes.count - 1
        countsFiles = world.quotas.lines.contains { $0.quota.files != nil }
        countsReceived = world.quotas.lines.contains { $0.quota.direction != .sent }
        lanes = question.queues.map { queue in
            var rest = queue.rest
            rest.files = max(0, rest.files)
            rest.bytes = rest.files > 0 ? max(0, rest.bytes) : 0
            let listed = queue.uploads.reduce(0.0) { $0 + Double(max(0, $1.left)) }
            return Lane(
                queue: queue, remote: question.remotes.firstIndex { $0.name == queue.destination },
                origin: question.origins.firstIndex { $0.name == queue.folder }, rest: rest,
                piece: max(1, (rest.files + Plan.pieces - 1) / Plan.pieces),
                files: Int64(queue.uploads.count) + rest.files, bytes: listed + Double(rest.bytes))
        }
        counts = lanes.map { _ in 0 }
        unfinished = lanes.count { !$0.isOver }
        for number in lanes.indices where lanes[number].isOver { lanes[number].ends = start }
    }

    var now: WallTime { start.advanced(by: .milliseconds(Int64(clock))) }
    var running: Int { counts.reduce(0, +) }

    mutating func plan() -> Plan {
        takeUnderWay()
        var events = 0
        while now < horizon, unfinished > 0 {
            events += 1
            if events > Plan.mostEvents || looks >= Plan.mostLooks || steps.count >= Plan.mostSteps {
                isCut = isRecording
                break
            }
            if isDue { look() }
            fill()
            if isDue { continue }
            share()
            advance()
        }
        let last = isCut ? max(start, now) : mark
        if isRecording { close(at: last) }
        return Plan(
            from: start, until: last, steps: steps.sorted { ($0.from, $0.to) < ($1.from, $1.to) },
            outcomes: lanes.indices.map { outcome(of: $0) }, isCut: isCut)
    }

    /// An upload that is being sent now keeps its slot, regardless of the others.
    mutating func takeUnderWay() {
        look()
        for number in lanes.indices {
            while lanes[number].next < lanes[number].queue.uploads.count,
                lanes[number].queue.uploads[lanes[number].next].isUnderWay, mayGoOn(lanes[number])
            { begin(number, isUnderWay: true) }
            // A begun upload continues, also where no new one may begin.
            let uploads = lanes[number].queue.uploads
            for place in uploads.indices.dropFirst(lanes[number].next) where uploads[place].isBegun {
                lanes[number].returned.append(Item(uploads[place], at: place))
            }
            lanes[number].hasBegunApart = true
            lanes[number].passBegun()
        }
        isDue = true
    }

    // MARK: Permission to send

    /// Evaluates the policy for each queue, and stops uploads that may not continue.
    mutating func look() {
        isDue = false
        looks += 1
        let now = now
        looked = world.now
        world.now = now
        if let until = world.everything?.until, until <= now { world.everything = nil }
        if let until = world.standstill?.until, until <= now { world.standstill = nil }
        if let until = world.clockTrouble?.until, until <= now {
            world.clockTrouble = nil
            timetable.asked = false
        }
        for number in remotes.indices {
            if let end = remotes[number].pause?.until, end <= now { remotes[number].pause = nil }
        }
        for number in origins.indices {
            if let end = origins[number].pause?.until, end <= now { origins[number].pause = nil }
        }
        for recount in world.quotas.advance(to: now, in: world.zone) {
            // A plan knows nothing of usage that was not read yet.
            world.quotas.recount(recount, spent: .none, at: now)
        }
        for number in lanes.indices where !lanes[number].isOver { look(at: number) }
        counted = world.quotas.lines.map { line in
            lanes.indices.filter { number in lanes[number].kind.map { line.counts($0) } ?? false }
        }
        limit()
        shared = []
        setBoundary()
    }

    mutating func look(at number: Int) {
        settleIdle(number)
        let queue = lanes[number].queue
        guard let remote = lanes[number].remote.map({ remotes[$0] }) else {
            lanes[number].holds = [
                Hold(.destination, since: start, text: "destination \(queue.destination) is not in the configuration")
            ]
            return
        }
        let origin = origin(of: lanes[number])
        lanes[number].holds = question.admission.holds(for: remote, from: origin, in: world)
        func kind(_ isMetered: Bool) -> QuotaBook.Class {
            QuotaBook.Class(queue.destination, from: queue.folder, isMetered: isMetered)
        }
        switch question.admission.way(to: remote, from: origin, in: world) {
        case .open(let passage):
            lanes[number].passage = passage
            lanes[number].kind = passage.ledger == .local ? nil : kind(passage.countsAsMetered)
            lanes[number].later = lanes[number].kind
        case .closed(_, let countsAsMetered): lanes[number].later = kind(countsAsMetered)
        }
        takeBackShort(number)
        holdWithoutSpeed(number)
        if lanes[number].holds.isEmpty { return }
        if !lanes[number].running.isEmpty, !mayGoOn(lanes[number]) { stop(number) }
        if lanes[number].running.isEmpty { finish(number, .held(lanes[number].reasons)) }
    }

    /// The folder of a queue, with its present exemptions.
    func origin(of lane: Lane) -> Admission.Origin {
        var origin = lane.origin.map { origins[$0] } ?? Admission.Origin(name: lane.queue.folder)
        origin.excused = Set(lane.queue.leaves.filter { $0.until > world.now }.map(\.excuse))
        return origin
    }

    /// Whether a begun upload may continue where no new one may begin.
    func mayGoOn(_ lane: Lane) -> Bool {
        if lane.holds.isEmpty { return true }
        guard let remote = lane.remote.map({ remotes[$0] }), question.rates.isKnown(for: remote.name) else {
            return false
        }
        let origin = origin(of: lane)
        guard question.admission.bans(on: remote, from: origin, in: world, isUnderWay: true).isEmpty else {
            return false
        }
        if origin.excused.contains(.quota) { return true }
        return lane.kind.map { world.quotas.room(for: $0).bytes != 0 } ?? true
    }

    mutating func stop(_ number: Int) {
        for var item in lanes[number].running {
            settle(&item)
            lanes[number].returned.append(item)
        }
        lanes[number].running = []
        counts[number] = 0
        lanes[number].returned.sort { $0.place < $1.place }
    }

    /// It counts in the quotas of files from now on.
    mutating func settle(_ item: inout Item) {
        if item.step != 0 { world.quotas.settle(item.step, Spending(files: item.files), at: now) }
        (item.step, item.hasPlace) = (0, true)
    }

    /// When the policy has to be evaluated again, although no quota is used up.
    mutating func setBoundary() {
        if !timetable.asked || timetable.at.map({ $0 <= world.now }) ?? false {
            var (quiet, still, mute) = (world, remotes, origins)
            quiet.quotas = QuotaBook(policy: PolicyRules())
            (quiet.everything, quiet.standstill) = (nil, nil)
            quiet.clockTrouble?.until = nil
            for number in still.indices { still[number].pause = nil }
            for number in mute.indices { mute[number].pause = nil }
            timetable = (true, question.admission.nextChange(still, mute, in: quiet))
        }
        let pauses =
            [world.everything?.until, world.standstill?.until, world.clockTrouble?.until]
            + (remotes.map(\.pause) + origins.map(\.pause)).map { $0?.until }
        // A quota is renewed at the end of its period, also where it is not used up.
        let stretches = world.quotas.lines.map { $0.stretch?.upperBound }
        let words = question.limits.map(\.until) + lanes.flatMap { $0.queue.leaves.map(\.until) }
        boundary = ([timetable.at] + pauses + stretches + words).compactMap { $0 }.filter { $0 > world.now }.min()
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
                guard let lane = next(to: number) else { continue }
                lastServed = number
                if begin(lane) { isGiven = true }
                if isDue { return }
            }
        }
    }

    func next(to remote: Int) -> Int? {
        var count = 0
        for number in lanes.indices where counts[number] > 0 && lanes[number].remote == remote {
            count += counts[number]
        }
        guard question.admission.free(for: remotes[remote], running: count, inAll: running) > 0 else { return nil }
        var best: (lane: Int, rank: (Int, Int))?
        for number in lanes.indices
        where lanes[number].remote == remote && lanes[number].mayBegin {
            let rank = (-lanes[number].priority, lanes[number].lastTurn)
            if best.map({ rank < $0.rank }) ?? true, hasSlot(lanes[number].queue.folder) { best = (number, rank) }
        }
        return best?.lane
    }

    func hasSlot(_ folder: String) -> Bool {
        guard let most = question.folderSlots[folder] else { return true }
        var count = 0
        for number in lanes.indices where counts[number] > 0 && lanes[number].queue.folder == folder {
            count += counts[number]
        }
        return count < most
    }

    /// - Parameter isUnderWay: It has its slot and its reservation.
    /// - Returns: Whether it filled a slot, or has to be called again.
    @discardableResult
    mutating func begin(_ number: Int, isUnderWay: Bool = false) -> Bool {
        guard var item = take(number) else { return false }
        if isUnderWay {
            goOn(&item, number)
        } else if !grant(&item, number) {
            setAside(item, number)
            if lanes[number].running.isEmpty, !lanes[number].hasNext { finish(number, .held(lanes[number].reasons)) }
            return true
        }
        turn += 1
        lanes[number].lastTurn = turn
        if countsFiles, !item.hasPlace, let kind = lanes[number].kind {
            lastStep += 1
            item.step = lastStep
            world.quotas.open(lastStep, Spending(files: item.files), for: kind, at: now)
            if world.quotas.room(for: kind).files == 0 { isDue = true }
        }
        lanes[number].running.append(item)
        counts[number] += 1
        if lanes[number].step == nil { lanes[number].step = Stretch(from: now, to: now) }
        return true
    }

    /// The next of a queue: one upload, or as many of its rest as are sent together and as quotas of files allow.
    mutating func take(_ number: Int) -> Item? {
        let uploads = lanes[number].queue.uploads
        if !lanes[number].returned.isEmpty { return lanes[number].returned.removeFirst() }
        if !lanes[number].again.isEmpty { return lanes[number].again.removeFirst() }
        let next = lanes[number].next
        if next < uploads.count {
            lanes[number].next += 1
            lanes[number].passBegun()
            return Item(uploads[next], at: next)
        }
        let rest = lanes[number].rest
        guard rest.files > 0 else { return nil }
        var files = min(rest.files, lanes[number].piece)
        if countsFiles, let kind = lanes[number].kind, let room = world.quotas.room(for: kind).files {
            files = max(1, min(files, room))
        }
        let bytes = files == rest.files ? rest.bytes : Int64(Int128(rest.bytes) * Int128(files) / Int128(rest.files))
        lanes[number].rest = Spending(bytes: rest.bytes - bytes, files: rest.files - files)
        return Item(
            place: uploads.count, left: Double(bytes), files: files, priority: uploads.last?.priority ?? 0,
            piece: lanes[number].queue.piece)
    }
}
