// Progress of a plan: the speed of running uploads, and the next event.

extension Planner {
    // MARK: Speed

    /// Collects the present limits of speed and the classes that they apply to.
    mutating func limit() {
        func least(_ rates: Int64?...) -> Double? { rates.compactMap { $0 }.min().map { Double(max(0, $0)) } }
        let metered = lanes.map(\.passage.countsAsMetered)
        let all = Array(lanes.indices)
        var caps: [PlanShares.Cap] = []
        func add(_ rate: Double?, _ members: [Int]) {
            if let rate, !members.isEmpty { caps.append(PlanShares.Cap(rate: rate, members: members)) }
        }
        func add(_ rules: PolicyRules, _ own: Int64?, _ members: [Int]) {
            add(least(rules.limit(in: world), own), members)
            add(least(rules.meteredLimit), members.filter { metered[$0] })
        }
        add(question.admission.rules, question.rates.everything, all)
        add(question.limits.filter { $0.until > world.now }.map { Double(max(0, $0.rate)) }.min(), all)
        for (number, remote) in remotes.enumerated() {
            add(remote.rules, question.rates.destinations[remote.name], all.filter { lanes[$0].remote == number })
        }
        for (number, origin) in origins.enumerated() {
            add(origin.rules, nil, all.filter { lanes[$0].origin == number })
        }
        self.caps = caps
    }

    /// Shares the rates among running uploads.
    mutating func share() {
        if counts == shared { return }
        shared = counts
        let speeds = PlanShares.speeds(counts, caps)
        for number in lanes.indices { lanes[number].speed = speeds[number] }
    }

    // MARK: Time

    /// Moves to the next moment at which something happens.
    mutating func advance() {
        var wait = Double.infinity
        for number in lanes.indices where counts[number] > 0 {
            let speed = lanes[number].speed
            for item in lanes[number].running {
                let next = min(item.left, item.granted)
                wait = next <= 0.5 ? 0 : speed > 0 ? min(wait, next / speed * 1000) : wait
            }
        }
        var usedUp: Int?
        for (number, line) in world.quotas.lines.enumerated() {
            // Also with too little left for a new upload, since running ones use it up.
            guard let left = line.unspent, left > 0 else { continue }
            let flow =
                counted[number].reduce(0.0) { $0 + lanes[$1].speed * Double(counts[$1] - lanes[$1].paid) }
                * carrying * line.quota.direction.share
            if flow > 0, Double(left) / flow * 1000 <= wait {
                wait = Double(left) / flow * 1000
                usedUp = number
            }
        }
        let due = [boundary, isRecording ? mark : nil, horizon].compactMap { $0 }.min() ?? horizon
        let toDue = Double(due.milliseconds - start.milliseconds) - clock
        let isBoundary = toDue <= wait
        move(by: isBoundary ? toDue : wait)
        if isBoundary {
            clock = Double(due.milliseconds - start.milliseconds)
            isDue = true
            if isRecording, due == mark { close(at: mark) }
        }
        // Remainders from rounding count as zero.
        if !isBoundary, let usedUp, let kind = lanes[counted[usedUp][0]].kind {
            let left = world.quotas.lines[usedUp].unspent ?? 0
            if left > 0 {
                let isSent = world.quotas.lines[usedUp].quota.direction == .sent
                world.quotas.spend(isSent ? Spending(bytes: left) : Spending(received: left), for: kind, at: now)
            }
            isDue = true
        }
        end()
        grantMore()
    }

    /// Bytes that leave the machine for each byte of a file.
    var carrying: Double { 1 + Double(max(0, question.overhead)) / 100 }

    mutating func move(by milliseconds: Double) {
        let seconds = max(0, milliseconds) / 1000
        clock += max(0, milliseconds)
        let now = now
        for number in lanes.indices {
            let count = counts[number]
            if count == 0 {
                if isRecording, lanes[number].isWaiting { lanes[number].idle += seconds }
                continue
            }
            lanes[number].going += isRecording ? seconds : 0
            let bytes = lanes[number].speed * seconds
            for place in lanes[number].running.indices {
                lanes[number].running[place].left -= bytes
                lanes[number].running[place].granted -= bytes
            }
            let sent = bytes * Double(count)
            lanes[number].sent += bytes * Double(count - lanes[number].paid)
            lanes[number].step?.bytes += sent
            lanes[number].step?.going += seconds
            lanes[number].step?.to = now
            guard let kind = lanes[number].kind else { continue }
            let counted = Int64(lanes[number].sent * carrying)
            let more = counted - lanes[number].counted
            let came = counted * Plan.answering / 100 - lanes[number].counted * Plan.answering / 100
            world.quotas.spend(Spending(bytes: more, received: came), for: kind, at: now)
            lanes[number].counted = counted
        }
    }

    /// Records what a queue has waited for since the last evaluation.
    mutating func settleIdle(_ number: Int) {
        let seconds = lanes[number].idle
        if seconds == 0 { return }
        lanes[number].idle = 0
        // Either only uploads that wait for a quota are left, or others have the slots.
        let reasons = lanes[number].hasNext ? lanes[number].holds : lanes[number].reasons
        if reasons.isEmpty { lanes[number].turns += seconds }
        // Without a known speed there is no end. That is an obstacle, and not something that it waits for.
        for hold in reasons where hold != unknownSpeed(to: lanes[number].queue.destination) {
            // The rest of the sentence contains amounts, which differ each day.
            let key = hold.kind.rawValue + (hold.text.split(separator: ",").first ?? "")
            lanes[number].waits[key, default: Wait(hold: hold, from: looked)].seconds += seconds
        }
    }

    /// Counts the server's answers for a number of files of a queue, where a quota counts received bytes.
    private mutating func countAnswers(to files: Int64, _ number: Int) {
        guard countsReceived, let kind = lanes[number].kind else { return }
        world.quotas.spend(Spending(received: Plan.answer * files), for: kind, at: now)
        if world.quotas.room(for: kind).bytes == 0 { isDue = true }
    }

    /// Removes finished uploads.
    mutating func end() {
        for number in lanes.indices
        where counts[number] > 0 && lanes[number].running.contains(where: { $0.left <= 0.5 }) {
            for var item in lanes[number].running where item.left <= 0.5 {
                settle(&item)
                countAnswers(to: item.files, number)
                lanes[number].step?.files += item.files
                if isRecording {
                    ended(Plan.Ended(queue: number, place: item.place, files: item.files, at: now))
                }
            }
            lanes[number].running.removeAll { $0.left <= 0.5 }
            counts[number] = lanes[number].running.count
            if lanes[number].isOver {
                lanes[number].ends = now
                unfinished -= 1
                finish(number, .done)
            } else if lanes[number].running.isEmpty, !lanes[number].reasons.isEmpty {
                finish(number, .held(lanes[number].reasons))
            }
        }
    }
}

extension Quota.Direction {
    /// Counted bytes for each one that is sent.
    fileprivate var share: Double {
        let coming = Double(Plan.answering) / 100
        return switch self {
        case .sent: 1
        case .received: coming
        case .both: 1 + coming
        }
    }
}
