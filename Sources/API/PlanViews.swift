package import Core

// The views of `plan`.

/// The options of a plan.
package struct PlanQuery: Sendable, Hashable {
    /// The end of the plan; `nil`: when all is sent, at the latest after a month.
    package var until: WallTime?
    /// Bytes a second for all transfers together, in place of measured rates.
    package var rate: Int64?
    /// The start of the plan; `nil`: now.
    package var from: WallTime?
    /// A name of `policy.networks`: every destination outside this machine is reached over that network.
    package var on: String?
    /// Further facts of that network, or of one without a name.
    package var facts: NetworkRule?
    /// Whether destinations outside this machine are in the local network then.
    package var isLAN: Bool?

    package init(
        until: WallTime? = nil, rate: Int64? = nil, from: WallTime? = nil, on: String? = nil,
        facts: NetworkRule? = nil, isLAN: Bool? = nil
    ) {
        self.from = from
        self.on = on
        self.facts = facts
        self.isLAN = isLAN
        self.until = until
        self.rate = rate
    }
}

/// The order and times of future uploads, as far as they can be predicted.
package struct PlanView: Codable, Sendable, Hashable {
    package var from: String
    package var until: String
    /// Whether there was too much to plan, so that the plan ends early.
    package var isCut: Bool
    package var rates: [PlanRateView]
    package var steps: [PlanStepView]
    package var queues: [PlanQueueView]
    /// Facts that a person needs to read the plan.
    package var notes: [String]

    package init(
        from: String, until: String, isCut: Bool, rates: [PlanRateView], steps: [PlanStepView], queues: [PlanQueueView],
        notes: [String]
    ) {
        self.from = from
        self.until = until
        self.isCut = isCut
        self.rates = rates
        self.steps = steps
        self.queues = queues
        self.notes = notes
    }
}

package struct PlanRateView: Codable, Sendable, Hashable {
    /// Absent for all destinations together.
    package var destination: String?
    /// Bytes a second; absent when unknown.
    package var rate: Int64?
    /// `given`; `measured`, from recent transfers; `usage`, from the busiest hour of the last week; `unknown`.
    package var source: String

    package init(destination: String? = nil, rate: Int64? = nil, source: String) {
        self.destination = destination
        self.rate = rate
        self.source = source
    }
}

/// A period in which uploads of one folder are sent to one destination.
package struct PlanStepView: Codable, Sendable, Hashable {
    package var from: String
    package var to: String
    package var folder: String
    package var destination: String
    /// Absent where any may be used.
    package var interface: String?
    /// `unmetered`, `metered`, `unknown`, `local`, or `any`: no rule depends on it.
    package var network: String
    /// Files that arrive in this period.
    package var files: Int64
    package var bytes: Int64
    package var rate: Int64
    /// The reason for its end: `done`, `held`, or `until` for the end of the plan.
    package var end: String
    /// The holds that end it.
    package var holds: [HoldView]

    package init(
        from: String, to: String, folder: String, destination: String, interface: String? = nil, network: String,
        files: Int64, bytes: Int64, rate: Int64, end: String, holds: [HoldView]
    ) {
        self.from = from
        self.to = to
        self.folder = folder
        self.destination = destination
        self.interface = interface
        self.network = network
        self.files = files
        self.bytes = bytes
        self.rate = rate
        self.end = end
        self.holds = holds
    }
}

/// All waiting uploads of one folder to one destination.
package struct PlanQueueView: Codable, Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var files: Int64
    package var bytes: Int64
    /// When its last upload is sent, also after the end of the plan; absent: not within a month, or unknown.
    package var ends: String?
    /// Files that are not sent when the plan ends.
    package var leftFiles: Int64
    package var leftBytes: Int64
    /// Files of the queue that are not copied yet, and are counted as if they were.
    package var copying: Int64
    /// Files that were paused one by one, which are not planned.
    package var paused: Int64
    /// Files that go only if another destination does not have them in time, which are not planned.
    package var standby: Int64
    /// Seconds in which some of it is sent, and in which it could be sent while other uploads have the slots.
    package var going: Int64
    package var turns: Int64
    /// The reasons why it waits, the longest first.
    package var waits: [PlanWaitView]
    /// The reasons why the end is unknown; empty where it is known, or where it is only not within a month.
    package var obstacles: [PlanObstacleView]

    package init(
        folder: String, destination: String, files: Int64, bytes: Int64, ends: String? = nil, leftFiles: Int64,
        leftBytes: Int64, copying: Int64, paused: Int64, standby: Int64, going: Int64, turns: Int64,
        waits: [PlanWaitView],
        obstacles: [PlanObstacleView]
    ) {
        self.folder = folder
        self.destination = destination
        self.files = files
        self.bytes = bytes
        self.ends = ends
        self.leftFiles = leftFiles
        self.leftBytes = leftBytes
        self.copying = copying
        self.paused = paused
        self.standby = standby
        self.going = going
        self.turns = turns
        self.waits = waits
        self.obstacles = obstacles
    }
}

/// An obstacle that leaves the end unknown.
package struct PlanObstacleView: Codable, Sendable, Hashable {
    /// `clock`: it is not trusted; `speed`: it is unknown; `never`: a quota in its present form never allows these
    /// files.
    package var kind: String
    package var text: String
    /// The number of files with this obstacle.
    package var files: Int64
    package var bytes: Int64

    package init(kind: String, text: String, files: Int64, bytes: Int64) {
        self.kind = kind
        self.text = text
        self.files = files
        self.bytes = bytes
    }
}

package struct PlanWaitView: Codable, Sendable, Hashable {
    package var kind: String
    package var text: String
    package var from: String
    /// The first end of the wait; absent when unknown.
    package var until: String?
    /// In total, up to the end of the plan.
    package var seconds: Int64

    package init(kind: String, text: String, from: String, until: String? = nil, seconds: Int64) {
        self.kind = kind
        self.text = text
        self.from = from
        self.until = until
        self.seconds = seconds
    }
}

extension PlanView {
    package init(
        _ plan: Plan, rates: [PlanRateView], backlog: [(copying: Int64, paused: Int64, standby: Int64)],
        notes: [String]
    ) {
        self.init(
            from: plan.from.description, until: plan.until.description, isCut: plan.isCut, rates: rates,
            steps: plan.steps.map(PlanStepView.init),
            queues: zip(plan.outcomes, backlog).map { PlanQueueView($0, $1) },
            notes: notes)
    }
}

extension PlanStepView {
    fileprivate init(_ step: Plan.Step) {
        let (end, holds): (String, [Hold]) =
            switch step.end {
            case .done: ("done", [])
            case .held(let holds): ("held", holds)
            case .horizon: ("until", [])
            }
        self.init(
            from: step.from.description, to: step.to.description, folder: step.folder, destination: step.destination,
            interface: step.interface, network: step.network.rawValue, files: step.files, bytes: step.bytes,
            rate: step.rate, end: end, holds: holds.map(HoldView.init))
    }
}

extension PlanQueueView {
    fileprivate init(_ outcome: Plan.Outcome, _ backlog: (copying: Int64, paused: Int64, standby: Int64)) {
        self.init(
            folder: outcome.folder, destination: outcome.destination, files: outcome.files, bytes: outcome.bytes,
            ends: outcome.ends?.description, leftFiles: outcome.left.files, leftBytes: outcome.left.bytes,
            copying: backlog.copying, paused: backlog.paused, standby: backlog.standby,
            going: Int64(outcome.going.inSeconds),
            turns: Int64(outcome.turns.inSeconds),
            waits: outcome.waits.map { wait in
                PlanWaitView(
                    kind: wait.hold.kind.rawValue, text: wait.hold.text, from: wait.from.description,
                    until: wait.hold.until?.description, seconds: Int64(wait.length.inSeconds))
            },
            obstacles: outcome.obstacles.map {
                PlanObstacleView(
                    kind: $0.kind.rawValue, text: $0.hold.text, files: $0.spending.files, bytes: $0.spending.bytes)
            })
    }
}
