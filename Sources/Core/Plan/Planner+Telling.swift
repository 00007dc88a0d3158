// Records the results of a plan.

extension Planner {
    mutating func finish(_ number: Int, _ end: Plan.Step.End) {
        guard let step = lanes[number].step else { return }
        lanes[number].step = nil
        guard isRecording, step.to > step.from || step.files > 0 else { return }
        let lane = lanes[number]
        steps.append(
            Plan.Step(
                from: step.from, to: step.to, folder: lane.queue.folder, destination: lane.queue.destination,
                interface: lane.passage.interface, network: lane.passage.ledger, files: step.files,
                bytes: Int64(step.bytes.rounded()),
                rate: step.going > 0 ? Int64((step.bytes / step.going).rounded()) : 0, end: end)
        )
    }

    /// The plan ends here; from now on only the end of each queue matters.
    mutating func close(at moment: WallTime) {
        for number in lanes.indices {
            settleIdle(number)
            if lanes[number].step != nil { finish(number, .horizon) }
            lanes[number].left = left(lanes[number])
        }
        isRecording = false
    }

    func left(_ lane: Lane) -> Spending {
        var left = lane.rest
        for upload in lane.queue.uploads[min(lane.next, lane.queue.uploads.count)...] {
            left += Spending(bytes: max(0, upload.left), files: 1)
        }
        for item in lane.running + lane.returned + lane.again + lane.short where item.left > 0.5 || item.files > 0 {
            left += Spending(bytes: Int64(max(0, item.left).rounded(.up)), files: item.files)
        }
        return left
    }

    func outcome(of number: Int) -> Plan.Outcome {
        let lane = lanes[number]
        return Plan.Outcome(
            folder: lane.queue.folder, destination: lane.queue.destination, files: lane.files, bytes: Int64(lane.bytes),
            ends: lane.ends, left: lane.left ?? left(lane),
            waits: lane.waits.values.sorted { ($1.seconds, $0.hold.text) < ($0.seconds, $1.hold.text) }.map {
                Plan.Wait(hold: $0.hold, from: $0.from, length: duration($0.seconds))
            }, going: duration(lane.going), turns: duration(lane.turns), obstacles: obstacles(number))
    }

    private func duration(_ seconds: Double) -> Duration { .milliseconds(Int64((seconds * 1000).rounded())) }
}
