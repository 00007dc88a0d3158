// Progress of a plan: the speed of running uploads, and the next event.

extension Planner {
    // MARK: Speed

    /// Collects the present limits of speed and the classes that they apply to.
    mutating func limit() {
        func least(_ rates: Int64?...) -> Double? { rates.compactMap { $0 }.min().map { Double(max(0, $0)) } }
        let all = Array(queues.indices)
        var caps: [PlanShares.Cap] = []
        func add(_ rate: Double?, _ members: [Int]) {
            if let rate, !members.isEmpty { caps.append(PlanShares.Cap(rate: rate, members: members)) }
        }
        func add(_ rules: PolicyRules, _ own: Int64?, _ members: [Int]) {
            add(least(rules.limit(in: inputs), own), members)
        }
        add(input.admission.rules, input.rates.everything, all)
        add(input.limits.filter { $0.until > inputs.now }.map { Double(max(0, $0.rate)) }.min(), all)
        for (number, remote) in remotes.enumerated() {
            add(remote.rules, input.rates.destinations[remote.name], all.filter { queues[$0].remote == number })
        }
        for (number, origin) in origins.enumerated() {
            add(origin.rules, nil, all.filter { queues[$0].origin == number })
        }
        let applied = queues.reduce(into: Set<AppliedRules.Rate>()) { $0.formUnion($1.route.applied.rates) }
        for rate in applied {
            add(least(rate.rule.limit), all.filter { queues[$0].route.applied.rates.contains(rate) })
        }
        self.caps = caps
    }

    /// Shares the rates among running uploads.
    mutating func share() {
        if counts == shared { return }
        shared = counts
        let speeds = PlanShares.speeds(counts, caps)
        for number in queues.indices { queues[number].speed = speeds[number] }
    }

    // MARK: Time

    /// Moves to the next moment at which something happens.
    mutating func advance() {
        var wait = Double.infinity
        for number in queues.indices where counts[number] > 0 {
            let speed = queues[number].speed
            for item in queues[number].running {
                let next = min(item.left, item.granted)
                wait = next <= 0.5 ? 0 : speed > 0 ? min(wait, next / speed * 1000) : wait
            }
        }
        var usedUp: Int?
        for (number, line) in inputs.quotas.lines.enumerated() {
            // Also with too little left for a new upload, since running ones use it up.
            guard let left = line.unspent, left > 0 else { continue }
            let flow =
                counted[number].reduce(0.0) { $0 + queues[$1].speed * Double(counts[$1] - queues[$1].paid) }
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
        if !isBoundary, let usedUp, let kind = queues[counted[usedUp][0]].kind {
            let left = inputs.quotas.lines[usedUp].unspent ?? 0
            if left > 0 {
                let isSent = inputs.quotas.lines[usedUp].quota.direction == .sent
                inputs.quotas.spend(isSent ? Spending(bytes: left) : Spending(received: left), for: kind, at: now)
            }
            isDue = true
        }
        end()
        grantMore()
    }

    /// Bytes that leave the machine for each byte of a file.
    var carrying: Double { 1 + Double(max(0, input.overhead)) / 100 }

    mutating func move(by milliseconds: Double) {
        let seconds = max(0, milliseconds) / 1000
        clock += max(0, milliseconds)
        let now = now
        for number in queues.indices {
            let count = counts[number]
            if count == 0 {
                if isRecording, queues[number].isWaiting { queues[number].idle += seconds }
                continue
            }
            queues[number].going += isRecording ? seconds : 0
            let bytes = queues[number].speed * seconds
            for place in queues[number].running.indices {
                queues[number].running[place].left -= bytes
                queues[number].running[place].granted -= bytes
            }
            let sent = bytes * Double(count)
            queues[number].sent += bytes * Double(count - queues[number].paid)
            queues[number].step?.bytes += sent
            queues[number].step?.going += seconds
            queues[number].step?.to = now
            guard let kind = queues[number].kind else { continue }
            let counted = Int64(queues[number].sent * carrying)
            let more = counted - queues[number].counted
            let came = counted * Plan.answering / 100 - queues[number].counted * Plan.answering / 100
            inputs.quotas.spend(Spending(bytes: more, received: came), for: kind, at: now)
            queues[number].counted = counted
        }
    }

    /// Records the reason of a queue's wait since the last evaluation.
    mutating func settleIdle(_ number: Int) {
        let seconds = queues[number].idle
        if seconds == 0 { return }
        queues[number].idle = 0
        // Either only uploads that wait for a quota are left, or others have the slots.
        let reasons = queues[number].hasNext ? queues[number].holds : queues[number].reasons
        if reasons.isEmpty { queues[number].turns += seconds }
        // Without a known speed there is no end. That is an obstacle, and not something that it waits for.
        for hold in reasons where hold != unknownSpeed(to: queues[number].queue.destination) {
            // The rest of the sentence contains amounts, which differ each day.
            let key = hold.kind.rawValue + (hold.text.split(separator: ",").first ?? "")
            queues[number].waits[key, default: Wait(hold: hold, from: lastEvaluation)].seconds += seconds
        }
    }

    /// Counts the server's answers for a number of files of a queue, where a quota counts received bytes.
    private mutating func countAnswers(to files: Int64, _ number: Int) {
        guard countsReceived, let kind = queues[number].kind else { return }
        inputs.quotas.spend(Spending(received: Plan.answer * files), for: kind, at: now)
        if inputs.quotas.remaining(for: kind).bytes == 0 { isDue = true }
    }

    /// Removes finished uploads.
    mutating func end() {
        for number in queues.indices
        where counts[number] > 0 && queues[number].running.contains(where: { $0.left <= 0.5 }) {
            for var item in queues[number].running where item.left <= 0.5 {
                countInFileQuotas(&item)
                countAnswers(to: item.files, number)
                queues[number].step?.files += item.files
                if isRecording {
                    ended(Plan.Ended(queue: number, place: item.place, files: item.files, at: now))
                }
            }
            queues[number].running.removeAll { $0.left <= 0.5 }
            counts[number] = queues[number].running.count
            if queues[number].isOver {
                queues[number].ends = now
                unfinished -= 1
                finish(number, .done)
            } else if queues[number].running.isEmpty, !queues[number].reasons.isEmpty {
                finish(number, .held(queues[number].reasons))
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
