/// What goes when: the backlog, carried through the policy by a clock that only counts.
///
/// ``Admission`` and ``QuotaBook`` decide, as they do for what really goes; nothing is known here that they do not know.
/// Networks, the health of destinations and pauses without an end stay as they are, and nothing new arrives.
package struct Plan: Hashable, Sendable {
    /// What waits, what may go, and how fast.
    package struct Question: Sendable {
        package var admission: Admission
        /// As it is now. What is reserved in its ``QuotaBook`` counts as sent.
        package var world: Admission.World
        package var remotes: [Admission.Remote]
        package var origins: [Admission.Origin]
        /// Uploads at the same time from a folder, where it has a limit of its own.
        package var folderSlots: [String: Int]
        package var queues: [Queue]
        package var rates: Rates
        /// Where the plan ends; `nil`: when all is sent, at the latest after ``Plan/longest``.
        package var until: WallTime?
        /// What a person said of the speed of all together, for a while.
        package var limits: [Limit] = []
        /// Percent of the bytes of a file that quotas count besides: headers and what is sent twice.
        package var overhead: Int64

        package init(
            admission: Admission, world: Admission.World, remotes: [Admission.Remote], origins: [Admission.Origin],
            folderSlots: [String: Int] = [:], queues: [Queue], rates: Rates, until: WallTime? = nil,
            overhead: Int64 = Plan.overhead
        ) {
            self.admission = admission
            self.world = world
            self.remotes = remotes
            self.origins = origins
            self.folderSlots = folderSlots
            self.queues = queues
            self.rates = rates
            self.until = until
            self.overhead = overhead
        }
    }

    /// That a person lets something off until then.
    package struct Leave: Hashable, Sendable {
        package var excuse: Excuse
        package var until: WallTime

        package init(_ excuse: Excuse, until: WallTime) {
            self.excuse = excuse
            self.until = until
        }
    }

    /// At most so many bytes a second until then.
    package struct Limit: Hashable, Sendable {
        package var rate: Int64
        package var until: WallTime

        package init(rate: Int64, until: WallTime) {
            self.rate = rate
            self.until = until
        }
    }

    /// What waits of one folder for one destination, or what of it a person lets off something.
    package struct Queue: Hashable, Sendable {
        package var folder: String
        package var destination: String
        /// The first, in the order in which they are claimed.
        package var uploads: [Upload]
        /// What follows them: known by its sum alone, and taken for files of one size and the priority of the last upload.
        package var rest: Spending
        package var leaves: [Leave] = []
        /// What of each file of the rest goes whole or not at all.
        package var piece: UncutPiece?

        package init(folder: String, destination: String, uploads: [Upload], rest: Spending = .none) {
            self.folder = folder
            self.destination = destination
            self.uploads = uploads
            self.rest = rest
        }
    }

    package struct Upload: Hashable, Sendable {
        /// Bytes that the destination has not acknowledged.
        package var left: Int64
        /// The higher one goes first.
        package var priority: Int
        /// It is being sent now, and keeps its slot.
        package var isUnderWay: Bool
        /// It counts in the quotas of files, and goes on where these let nothing new begin.
        package var isBegun: Bool
        /// What of it goes whole or not at all; `nil` where it may be cut anywhere.
        package var piece: UncutPiece?

        package init(
            left: Int64, priority: Int = 0, isUnderWay: Bool = false, isBegun: Bool = false, piece: UncutPiece? = nil
        ) {
            self.piece = piece
            self.left = left
            self.priority = priority
            self.isUnderWay = isUnderWay
            self.isBegun = isBegun
        }
    }

    /// Bytes of files a second. Uploads that run share them, and what ``PolicyRules`` allows, evenly.
    package struct Rates: Hashable, Sendable {
        /// Of all together; `nil`: only what each destination takes counts.
        package var everything: Int64?
        /// What a destination takes. One of which nothing is known here nor above is not planned.
        package var destinations: [String: Int64]

        package init(everything: Int64? = nil, destinations: [String: Int64] = [:]) {
            self.everything = everything
            self.destinations = destinations
        }

        package func isKnown(for destination: String) -> Bool {
            (everything ?? destinations[destination] ?? 0) > 0 && destinations[destination] != 0
        }
    }

    /// A stretch of time in which one folder's uploads to one destination go.
    package struct Step: Hashable, Sendable {
        package enum End: Hashable, Sendable {
            /// All of it is sent.
            case done
            /// It may not go on.
            case held([Hold])
            /// The plan ends here.
            case horizon
        }

        package var from: WallTime
        package var to: WallTime
        package var folder: String
        package var destination: String
        /// By which it has to leave; `nil` where any may be used.
        package var interface: String?
        package var network: NetworkClass
        /// That arrive in it.
        package var files: Int64
        /// Of files; what carries them is not counted.
        package var bytes: Int64
        /// Bytes a second while any of it goes.
        package var rate: Int64
        package var end: End
    }

    /// What kept a queue from going, and for how long in all, up to the end of the plan.
    package struct Wait: Hashable, Sendable {
        package var hold: Hold
        /// When it began for the first time.
        package var from: WallTime
        package var length: Duration
    }

    /// What becomes of one queue.
    package struct Outcome: Hashable, Sendable {
        package var folder: String
        package var destination: String
        package var files: Int64
        package var bytes: Int64
        /// When the last of it is sent, also after the end of the plan; `nil`: not within ``Plan/longest``, or nobody can say.
        package var ends: WallTime?
        /// What is not sent at the end of the plan.
        package var left: Spending
        /// The longest first.
        package var waits: [Wait]
        /// For how long some of it goes.
        package var going: Duration
        /// For how long it might go, and others have the slots.
        package var turns: Duration
        /// Why nobody can say when the last of it is sent; nothing where somebody can, or where it is only not within ``Plan/longest``.
        package var obstacles: [Obstacle] = []
    }

    /// Something without which there is no end, for a part of a queue.
    package struct Obstacle: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            /// The clock is not believed, and nobody knows when it will be.
            case clock
            /// Nobody knows how fast bytes go there.
            case speed
            /// A quota never leaves enough for a piece that goes whole or not at all.
            case never
        }

        package var kind: Kind
        package var hold: Hold
        /// What it keeps.
        package var spending: Spending
        /// The quota.
        var line: QuotaBook.Line?
    }

    package var from: WallTime
    package var until: WallTime
    /// In the order in which they begin.
    package var steps: [Step]
    /// One for each queue, in their order.
    package var outcomes: [Outcome]
    /// There was too much to plan, and it ends early: at ``until``.
    package var isCut: Bool

    /// One upload that is sent, or so many of the rest of its queue.
    package struct Ended: Hashable, Sendable {
        /// Its queue's number.
        package var queue: Int
        /// Its place in that queue; for what is known by its sum alone, one behind the last upload.
        package var place: Int
        package var files: Int64
        package var at: WallTime
    }

    /// - Parameter ended: Hears of each upload that is sent before the plan ends.
    package init(_ question: Question, ended: @escaping (Ended) -> Void = { _ in }) {
        var planner = Planner(question, ended: ended)
        self = planner.plan()
    }

    init(from: WallTime, until: WallTime, steps: [Step], outcomes: [Outcome], isCut: Bool) {
        self.from = from
        self.until = until
        self.steps = steps
        self.outcomes = outcomes
        self.isCut = isCut
    }

    /// What quotas count besides the bytes of files, in percent: the headers of full segments over Ethernet, and a little.
    package static let overhead: Int64 = 4
    /// What comes in for what is sent, in percent: an acknowledgement of every other segment, and a little; and for each file, its answers.
    package static let answering: Int64 = 3
    package static let answer: Int64 = 1 << 10
    /// For how long anything is planned ahead where nobody says until when.
    package static let longest = Duration.seconds(31 * 86_400)
    /// The furthest end that anybody may ask for.
    package static let furthest = Duration.seconds(366 * 86_400)
    /// What a queue knows by its sum is sent in so many pieces at most: a million files cost no more than this.
    static let pieces: Int64 = 256
    /// Stretches of time and looks at the policy: more than any person reads, and a bound for what nobody foresaw.
    static let mostSteps = 4000
    static let mostLooks = 20_000
    static let mostEvents = 4_000_000
}
