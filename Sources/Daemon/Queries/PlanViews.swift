package import Core

// What `plan` shows.

/// What is asked of a plan.
package struct PlanQuery: Sendable, Hashable {
    /// Where it ends; `nil`: when all is sent, at the latest after a month.
    package var until: WallTime?
    /// Bytes a second of all transfers together, in place of what was measured.
    package var rate: Int64?

    package init(until: WallTime? = nil, rate: Int64? = nil) {
        self.until = until
        self.rate = rate
    }
}

/// What goes when, as far as can be told now.
package struct PlanView: Codable, Sendable, Hashable {
    package var from: String
    package var until: String
    /// There was too much to plan, and it ends early.
    package var isCut: Bool
    package var rates: [PlanRateView]
    package var steps: [PlanStepView]
    package var queues: [PlanQueueView]
    /// What a person has to know to read it.
    package var notes: [String]
}

package struct PlanRateView: Codable, Sendable, Hashable {
    /// Absent: of all together.
    package var destination: String?
    /// Bytes a second; absent when nobody knows.
    package var rate: Int64?
    /// `given`, `measured` while it was sent to lately, `usage`: of the best hour of the last week, `unknown`.
    package var source: String
}

/// A stretch of time in which uploads of one folder go to one destination.
package struct PlanStepView: Codable, Sendable, Hashable {
    package var from: String
    package var to: String
    package var folder: String
    package var destination: String
    /// Absent where any may be used.
    package var interface: String?
    /// `unmetered`, `metered`, `unknown`, `local`, or `any`: nobody needs to know.
    package var network: String
    /// That arrive in it.
    package var files: Int64
    package var bytes: Int64
    package var rate: Int64
    /// `done`, `held`, `until`: the plan ends.
    package var end: String
    /// What ends it.
    package var holds: [HoldView]
}

/// All that waits of one folder for one destination.
package struct PlanQueueView: Codable, Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var files: Int64
    package var bytes: Int64
    /// When the last of it is sent, also after the end of the plan; absent: not within a month, or nobody can say.
    package var ends: String?
    /// What is not sent when the plan ends.
    package var leftFiles: Int64
    package var leftBytes: Int64
    /// Files among them that are not copied yet, and counted as if they were.
    package var copying: Int64
    /// Files that somebody paused one by one, which are not planned.
    package var paused: Int64
    /// Seconds in which some of it goes, and in which it might go while others have the slots.
    package var going: Int64
    package var turns: Int64
    /// What keeps it from going, the longest first.
    package var waits: [PlanWaitView]
    /// Why nobody can say when the last of it is sent; empty where somebody can, or where it is only not within a month.
    package var obstacles: [PlanObstacleView]
}

/// Something without which there is no end.
package struct PlanObstacleView: Codable, Sendable, Hashable {
    /// `clock`: it is not believed; `speed`: it is not known; `never`: a quota never lets these files go, as it is.
    package var kind: String
    package var text: String
    /// What it keeps.
    package var files: Int64
    package var bytes: Int64
}

package struct PlanWaitView: Codable, Sendable, Hashable {
    package var kind: String
    package var text: String
    package var from: String
    /// For the first time; absent when nobody knows.
    package var until: String?
    /// In all, up to the end of the plan.
    package var seconds: Int64
}

extension PlanView {
    init(_ plan: Plan, rates: [PlanRateView], backlog: [(copying: Int64, paused: Int64)], notes: [String]) {
        self.init(
            from: plan.from.description, until: plan.until.description, isCut: plan.isCut, rates: rates,
            steps: plan.steps.map(PlanStepView.init),
            queues: zip(plan.outcomes, backlog).map { PlanQueueView($0, copying: $1.copying, paused: $1.paused) },
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
    fileprivate init(_ outcome: Plan.Outcome, copying: Int64, paused: Int64) {
        self.init(
            folder: outcome.folder, destination: outcome.destination, files: outcome.files, bytes: outcome.bytes,
            ends: outcome.ends?.description, leftFiles: outcome.left.files, leftBytes: outcome.left.bytes,
            copying: copying, paused: paused, going: Int64(outcome.going.inSeconds),
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
