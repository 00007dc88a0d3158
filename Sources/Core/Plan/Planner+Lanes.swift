// What a plan keeps of each queue.

extension Planner {
    /// One upload, or some of those that are known by their sum.
    struct Item {
        var place: Int
        var left: Double
        var files: Int64
        var priority: Int
        /// It counts in the quotas of files already.
        var hasPlace = false
        /// What is reserved of those for it; 0: nothing. As in the ledger it counts when that is settled.
        var step: Int64 = 0
        /// What of it goes whole or not at all.
        var piece: UncutPiece?
        /// Bytes that may go before it needs to ask for more room.
        var granted = Double.infinity
        /// What is granted counts as sent already.
        var isPaid = false
    }

    /// One queue, and how far it is.
    struct Lane {
        let queue: Plan.Queue
        let remote: Int?
        let origin: Int?
        /// What is not begun yet.
        var next = 0
        var rest: Spending
        let piece: Int64
        /// Begun and stopped, in their order: they go on before others begin.
        var returned: [Item] = []
        var hasBegunApart = false
        /// Not begun, and waited for room: they go before those that come next.
        var again: [Item] = []
        /// Wait until a quota leaves enough for a piece of them, which for some it never does.
        var short: [Item] = []
        /// Why they wait.
        var shortage: Hold?
        var running: [Item] = []
        var holds: [Hold] = []
        var passage = Admission.Passage.local
        var kind: QuotaBook.Class?
        /// As ``kind``, also where the way is closed now.
        var later: QuotaBook.Class?
        /// Bytes a second for each that runs.
        var speed = 0.0
        /// Sent in all, exactly, and as far as quotas know it.
        var sent = 0.0
        var counted: Int64 = 0
        var lastTurn = 0
        var step: Stretch?
        var waits: [String: Wait] = [:]
        /// Seconds since the last look in which none of it went, though something is left.
        var idle = 0.0
        var going = 0.0
        var turns = 0.0
        var files: Int64
        var bytes: Double
        var ends: WallTime?
        var left: Spending?

        var isOver: Bool { !isWaiting && running.isEmpty }
        /// Something of it is not under way.
        var isWaiting: Bool { hasNext || !short.isEmpty }
        /// Something of it may go now, if there is a slot.
        var mayBegin: Bool { holds.isEmpty ? hasNext : !returned.isEmpty && holds.allSatisfy(\.sparesBegun) }
        /// What is begun stands among what has returned.
        mutating func passBegun() {
            while hasBegunApart, next < queue.uploads.count, queue.uploads[next].isBegun { next += 1 }
        }
        var hasNext: Bool {
            !returned.isEmpty || !again.isEmpty || next < queue.uploads.count || rest.files > 0
        }
        /// Of what runs, how many count as sent already.
        var paid: Int { running.count(where: \.isPaid) }
        /// All that keeps it.
        var reasons: [Hold] { holds + [shortage].compactMap { $0 } }

        var priority: Int {
            if let first = returned.first ?? again.first { return first.priority }
            return next < queue.uploads.count ? queue.uploads[next].priority : queue.uploads.last?.priority ?? 0
        }
    }

    /// What a queue waits for, and how many seconds so far.
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
