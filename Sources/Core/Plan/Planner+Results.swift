// Records the results of a plan.

extension Planner {
    mutating func finish(_ number: Int, _ end: Plan.Step.End) {
        guard let step = queues[number].step else { return }
        queues[number].step = nil
        guard isRecording, step.to > step.from || step.files > 0 else { return }
        let queue = queues[number]
        steps.append(
            Plan.Step(
                from: step.from, to: step.to, folder: queue.queue.folder, destination: queue.queue.destination,
                interface: queue.route.interface, network: queue.route.ledger, files: step.files,
                bytes: Int64(step.bytes.rounded()),
                rate: step.going > 0 ? Int64((step.bytes / step.going).rounded()) : 0, end: end)
        )
    }

    /// The plan ends here; from now on only the end of each queue matters.
    mutating func close(at moment: WallTime) {
        for number in queues.indices {
            settleIdle(number)
            if queues[number].step != nil { finish(number, .horizon) }
            queues[number].left = left(queues[number])
        }
        isRecording = false
    }

    func left(_ queue: PlannedQueue) -> Spending {
        var left = queue.rest
        for upload in queue.queue.uploads[min(queue.next, queue.queue.uploads.count)...] {
            left += Spending(bytes: max(0, upload.left), files: 1)
        }
        for item in queue.running + queue.returned + queue.quotaReleased + queue.quotaBlocked
        where item.left > 0.5 || item.files > 0 {
            left += Spending(bytes: Int64(max(0, item.left).rounded(.up)), files: item.files)
        }
        return left
    }

    func outcome(of number: Int) -> Plan.Outcome {
        let queue = queues[number]
        return Plan.Outcome(
            folder: queue.queue.folder, destination: queue.queue.destination, files: queue.files,
            bytes: Int64(queue.bytes),
            ends: queue.ends, left: queue.left ?? left(queue),
            waits: queue.waits.values.sorted { ($1.seconds, $0.hold.text) < ($0.seconds, $1.hold.text) }.map {
                Plan.Wait(hold: $0.hold, from: $0.from, length: duration($0.seconds))
            }, going: duration(queue.going), turns: duration(queue.turns), obstacles: obstacles(number))
    }

    private func duration(_ seconds: Double) -> Duration { .milliseconds(Int64((seconds * 1000).rounded())) }
}
