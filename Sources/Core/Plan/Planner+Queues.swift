// The state of each queue in a plan.

extension Planner {
    /// One upload, or several of the rest of a queue.
    struct Item {
        var place: Int
        var left: Double
        var files: Int64
        var priority: Int
        /// It is counted in the quotas of files already.
        var hasPlace = false
        /// Reservation in the ledger for its files; 0: none. As in the ledger it counts when it is settled.
        var step: Int64 = 0
        /// The piece of it that cannot be divided.
        var piece: IndivisibleRequest?
        /// Bytes that may be sent before it needs another grant.
        var granted = Double.infinity
        /// The granted bytes count as sent already.
        var isPaid = false
    }

    /// One queue, and its progress.
    struct PlannedQueue {
        let queue: Plan.Queue
        let remote: Int?
        let origin: Int?
        /// The next upload that is not begun yet.
        var next = 0
        var rest: Spending
        let piece: Int64
        /// Begun and stopped, in their order: they continue before others begin.
        var returned: [Item] = []
        var hasCollectedBegun = false
        /// Not begun, and waited for space in a quota: they are sent before the following ones.
        var quotaReleased: [Item] = []
        /// Uploads that wait until a quota leaves enough for a piece of them, which for some it never does.
        var quotaBlocked: [Item] = []
        /// Why they wait.
        var shortage: Hold?
        var running: [Item] = []
        var holds: [Hold] = []
        var route = Admission.Route.local
        var kind: QuotaState.Class?
        /// Like ``kind``, also where the route is closed now.
        var classWhenOpen: QuotaState.Class?
        /// Bytes a second of each running upload.
        var speed = 0.0
        /// Sent in total, exactly, and as counted by the quotas.
        var sent = 0.0
        var counted: Int64 = 0
        var lastTurn = 0
        var step: Stretch?
        var waits: [String: Wait] = [:]
        /// Seconds since the last evaluation without progress, though something is left.
        var idle = 0.0
        var going = 0.0
        var turns = 0.0
        var files: Int64
        var bytes: Double
        var ends: WallTime?
        var left: Spending?

        var isOver: Bool { !isWaiting && running.isEmpty }
        /// Part of it is not being sent.
        var isWaiting: Bool { hasNext || !quotaBlocked.isEmpty }
        /// Part of it may be sent now, if there is a slot.
        var mayBegin: Bool { holds.isEmpty ? hasNext : !returned.isEmpty && holds.allSatisfy(\.holdsOnlyNewUploads) }
        /// Moves begun uploads to those that have returned.
        mutating func skipBegun() {
            while hasCollectedBegun, next < queue.uploads.count, queue.uploads[next].isBegun { next += 1 }
        }
        var hasNext: Bool {
            !returned.isEmpty || !quotaReleased.isEmpty || next < queue.uploads.count || rest.files > 0
        }
        /// Number of running uploads that count as sent already.
        var paid: Int { running.count(where: \.isPaid) }
        /// All holds of it.
        var reasons: [Hold] { holds + [shortage].compactMap { $0 } }

        var priority: Int {
            if let first = returned.first ?? quotaReleased.first { return first.priority }
            return next < queue.uploads.count ? queue.uploads[next].priority : queue.uploads.last?.priority ?? 0
        }
    }

    /// A hold of a queue, and for how many seconds so far.
    struct Wait {
        let hold: Hold
        let from: WallTime
        var seconds = 0.0
    }

    /// A ``Plan/Step`` that is not over.
    struct Stretch {
        var from: WallTime
        var to: WallTime
        var files: Int64 = 0
        var bytes = 0.0
        var going = 0.0
    }
}

extension Planner.Item {
    init(_ upload: Plan.Upload, at place: Int) {
        self.init(
            place: place, left: Double(max(0, upload.left)), files: 1, priority: upload.priority,
            hasPlace: upload.isBegun || upload.isUnderWay, piece: upload.piece)
    }
}
