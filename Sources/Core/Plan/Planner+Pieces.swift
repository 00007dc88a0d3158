// Pieces that cannot be divided: a piece begins when the quotas leave enough for it.

extension Planner {
    /// The bytes that quotas leave a queue for a piece; `nil` where none counts its bytes.
    private func remaining(_ number: Int) -> Int64? {
        guard let kind = queues[number].kind, !origin(of: queues[number]).exempt.contains(.quota) else { return nil }
        return inputs.quotas.lines.filter { $0.counts(kind) }.compactMap { line in
            line.bytesLeft.map { max(0, line.quota.direction.sendable(of: $0) - reservedInTransfer(line)) }
        }.min()
    }

    /// The bytes that are reserved for pieces in transfer.
    private func reservedInTransfer(_ line: QuotaState.Line) -> Int64 {
        var sum: Int64 = 0
        for number in queues.indices where counts[number] > 0 {
            guard let kind = queues[number].kind, line.counts(kind) else { continue }
            for item in queues[number].running where item.granted < .infinity {
                sum = sum.addingClamped(IndivisibleRequest.cost(ofBody: Int64(max(0, item.granted).rounded(.up))))
            }
        }
        return sum
    }

    /// Starts the next piece, where the quota leaves enough. Where it leaves plenty, grants many pieces at once:
    /// granting each alone would give the same plan, more slowly.
    func grant(_ item: inout Item, _ number: Int) -> Bool {
        (item.granted, item.isPaid) = (.infinity, false)
        guard let piece = item.piece, item.left > 0.5, let remaining = remaining(number) else { return true }
        let next = min(piece.bytes, Int64(item.left.rounded(.up)))
        guard IndivisibleRequest.cost(ofBody: next) <= remaining else { return false }
        let many = max(1, remaining / piece.cost / Int64(8 * (running + 1)))
        item.granted = min(item.left, Double(piece.bytes) * Double(many))
        return true
    }

    /// The bytes of the piece in transfer were reserved, and count as sent already.
    func resumePiece(_ item: inout Item, _ number: Int) {
        guard let piece = item.piece, item.left > 0.5, remaining(number) != nil else { return }
        (item.granted, item.isPaid) = (min(item.left, Double(piece.bytes)), true)
    }

    /// It waits for space in a quota, and others are tried.
    mutating func blockOnQuota(_ item: Item, _ number: Int) {
        queues[number].quotaBlocked.append(item)
        // A shortage that ends is reported in preference to one that never does.
        guard queues[number].shortage?.until == nil, let shortage = shortage(of: item, number) else { return }
        queues[number].shortage = shortage
    }

    /// The hold when a quota leaves too little for its next piece.
    private func shortage(of item: Item, _ number: Int) -> Hold? {
        guard let piece = item.piece, let kind = queues[number].kind else { return nil }
        if let line = inputs.quotas.lineTooSmall(cost(item), for: kind) {
            return Hold(
                .quota, since: now, text: line.neverSentText(piece, to: kind.destination, isWhole: isWhole(item)))
        }
        guard let line = inputs.quotas.remaining(for: kind).binding else { return nil }
        return Hold(
            .quota, since: now, until: line.stretch?.upperBound,
            text:
                "too little is left of \(line.quota.byteWords ?? "") of \(line.place.words) (`quotas`), and the next piece, "
                + "which is sent whole or not at all, takes \(shownBytes(line.counted(cost(item)))) with its overhead")
    }

    /// A queue with unknown speed is not planned. Where a quota leaves too little for its smallest piece, the queue
    /// waits for that.
    mutating func holdWithoutSpeed(_ number: Int) {
        guard !input.rates.isKnown(for: queues[number].queue.destination) else { return }
        let isUnderWay = queues[number].queue.uploads.contains(where: \.isUnderWay)
        if queues[number].holds.isEmpty, !isUnderWay, let remaining = remaining(number),
            let least = items(of: queues[number]).min(by: { cost($0) < cost($1) }), cost(least) > remaining,
            let shortage = shortage(of: least, number)
        {
            queues[number].holds = [shortage]
        }
        queues[number].holds.append(unknownSpeed(to: queues[number].queue.destination))
    }

    private func cost(_ item: Item) -> Int64 {
        guard let piece = item.piece else { return 0 }
        return IndivisibleRequest.cost(ofBody: min(piece.bytes, Int64(max(0, item.left).rounded(.up))))
    }

    private func isWhole(_ item: Item) -> Bool {
        item.files == 1 && !item.hasPlace && item.piece.map { Double($0.bytes) >= item.left } ?? false
    }

    /// Uploads that waited for a quota are tried again when there is enough for the smallest of them.
    mutating func returnShort(_ number: Int) {
        guard let least = queues[number].quotaBlocked.map({ cost($0) }).min(),
            remaining(number).map({ $0 >= least }) ?? true
        else {
            return
        }
        let back = queues[number].quotaBlocked
        (queues[number].quotaBlocked, queues[number].shortage) = ([], nil)
        queues[number].returned += back.filter(\.hasPlace)
        queues[number].returned.sort { $0.place < $1.place }
        queues[number].quotaReleased += back.filter { !$0.hasPlace }
        queues[number].quotaReleased.sort { $0.place < $1.place }
    }

    /// When pieces are over, the next ones begin, or wait for a quota.
    mutating func grantMore() {
        for number in queues.indices where counts[number] > 0 {
            guard queues[number].running.contains(where: { $0.granted <= 0.5 }) else { continue }
            let running = queues[number].running
            queues[number].running = running.filter { $0.granted > 0.5 }
            for var item in running where item.granted <= 0.5 {
                if grant(&item, number) {
                    queues[number].running.append(item)
                    continue
                }
                countInFileQuotas(&item)
                blockOnQuota(item, number)
            }
            counts[number] = queues[number].running.count
            if queues[number].running.isEmpty, !queues[number].hasNext { finish(number, .held(queues[number].reasons)) }
        }
    }

    // MARK: Reasons without an end

    func unknownSpeed(to destination: String) -> Hold {
        Hold(.destination, since: start, text: "the rate to \(destination) is not known yet")
    }

    /// Why it is unknown when a queue is sent; empty where it is known.
    func obstacles(_ number: Int) -> [Plan.Obstacle] {
        let queue = queues[number]
        guard queue.ends == nil else { return [] }
        var obstacles = permanentObstacles(queue)
        let lost = obstacles.reduce(Spending.none) { $0 + $1.spending }
        let all = left(queue)
        let rest = Spending(bytes: max(0, all.bytes - lost.bytes), files: max(0, all.files - lost.files))
        if rest.files == 0 { return obstacles }
        // Quotas, windows and a `bandwidth` of 0 that no time ends.
        if let hold = queue.holds.first(where: { ($0.kind == .quota || $0.isByTimeAlone) && $0.until == nil }) {
            return obstacles + [Plan.Obstacle(kind: .never, hold: hold, spending: rest)]
        }
        if let hold = queue.holds.first(where: { $0.kind == .clock }) {
            obstacles.append(Plan.Obstacle(kind: .clock, hold: hold, spending: rest))
        }
        if queue.remote != nil, !input.rates.isKnown(for: queue.queue.destination) {
            obstacles.append(
                Plan.Obstacle(kind: .speed, hold: unknownSpeed(to: queue.queue.destination), spending: rest))
        }
        return obstacles
    }

    /// Pieces for which a quota never leaves enough, by quota.
    private func permanentObstacles(_ queue: PlannedQueue) -> [Plan.Obstacle] {
        guard let kind = queue.classWhenOpen, !origin(of: queue).exempt.contains(.quota) else { return [] }
        var found: [Plan.Obstacle] = []
        for item in items(of: queue) {
            guard let piece = item.piece, let line = inputs.quotas.lineTooSmall(cost(item), for: kind) else { continue }
            let spending = Spending(bytes: Int64(max(0, item.left).rounded(.up)), files: item.files)
            let text = line.neverSentText(piece, to: kind.destination, isWhole: isWhole(item))
            // One sentence for everything that the same quota keeps waiting, about the first piece.
            if let same = found.firstIndex(where: { $0.line == line }) {
                found[same].spending += spending
            } else {
                found.append(
                    Plan.Obstacle(
                        kind: .never, hold: Hold(.quota, since: start, text: text), spending: spending, line: line))
            }
        }
        return found
    }

    /// Everything that is left of a queue.
    private func items(of queue: PlannedQueue) -> [Item] {
        var items = queue.returned + queue.quotaReleased + queue.quotaBlocked + queue.running
        for place in queue.queue.uploads.indices.dropFirst(queue.next) {
            items.append(Item(queue.queue.uploads[place], at: place))
        }
        if queue.rest.files > 0 {
            items.append(
                Item(
                    place: queue.queue.uploads.count, left: Double(queue.rest.bytes), files: queue.rest.files,
                    priority: 0,
                    piece: queue.queue.piece))
        }
        return items
    }
}
