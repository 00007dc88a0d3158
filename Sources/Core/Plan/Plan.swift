/// The planned times of all uploads: the backlog, simulated under the policy with a virtual clock.
///
/// ``Admission`` and ``QuotaState`` decide, as they do for real uploads; the plan has the same knowledge. Networks,
/// the health of destinations and pauses without an end stay as they are, and no new files arrive.
package struct Plan: Hashable, Sendable {
    /// The backlog, the policy inputs and the speeds.
    package struct Input: Sendable {
        package var admission: Admission
        /// The present policy inputs. Bytes that are reserved in its ``QuotaState`` count as sent.
        package var inputs: Admission.PolicyInputs
        package var remotes: [Admission.DestinationState]
        package var origins: [Admission.FolderState]
        /// Parallel uploads from a folder, where it has a limit of its own.
        package var folderSlots: [String: Int]
        package var queues: [Queue]
        package var rates: Rates
        /// Where the plan ends; `nil`: when every file is sent, at the latest after ``Plan/longest``.
        package var until: WallTime?
        /// A person's temporary limits of the total speed.
        package var limits: [Limit] = []
        /// Percent of a file's bytes that quotas count in addition: headers and retransmissions.
        package var overhead: Int64

        package init(
            admission: Admission, inputs: Admission.PolicyInputs, remotes: [Admission.DestinationState],
            origins: [Admission.FolderState],
            folderSlots: [String: Int] = [:], queues: [Queue], rates: Rates, until: WallTime? = nil,
            overhead: Int64 = Plan.overhead
        ) {
            self.admission = admission
            self.inputs = inputs
            self.remotes = remotes
            self.origins = origins
            self.folderSlots = folderSlots
            self.queues = queues
            self.rates = rates
            self.until = until
            self.overhead = overhead
        }
    }

    /// An exemption that a person gave, until then.
    package struct OverrideGrant: Hashable, Sendable {
        package var exemption: Exemption
        package var until: WallTime

        package init(_ exemption: Exemption, until: WallTime) {
            self.exemption = exemption
            self.until = until
        }
    }

    /// At most this many bytes a second until then.
    package struct Limit: Hashable, Sendable {
        package var rate: Int64
        package var until: WallTime

        package init(rate: Int64, until: WallTime) {
            self.rate = rate
            self.until = until
        }
    }

    /// The waiting uploads of one folder for one destination, or those of them that rules tell apart from the others.
    package struct Queue: Hashable, Sendable {
        package var folder: String
        package var destination: String
        /// The first uploads, in the order in which they are claimed.
        package var uploads: [Upload]
        /// The uploads that follow: only their sum is known. They are treated as files of equal size with the priority
        /// of the last upload.
        package var rest: Spending
        /// What is known of each of the files.
        package var file = FileAnswers.noFile
        package var grants: [OverrideGrant] = []
        /// The piece of each file of the rest that cannot be divided.
        package var piece: IndivisibleRequest?

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
        /// A higher one is sent first.
        package var priority: Int
        /// The upload is being sent now, and keeps its slot.
        package var isUnderWay: Bool
        /// The upload counts in the quotas of files, and continues where these allow no new one.
        package var isBegun: Bool
        /// The piece of it that cannot be divided; `nil` where it may be cut anywhere.
        package var piece: IndivisibleRequest?

        package init(
            left: Int64, priority: Int = 0, isUnderWay: Bool = false, isBegun: Bool = false,
            piece: IndivisibleRequest? = nil
        ) {
            self.piece = piece
            self.left = left
            self.priority = priority
            self.isUnderWay = isUnderWay
            self.isBegun = isBegun
        }
    }

    /// Bytes of files a second. Running uploads share them evenly, and the limit of ``PolicyRules`` too.
    package struct Rates: Hashable, Sendable {
        /// The rate of all destinations together; `nil`: only the rates of destinations count.
        package var everything: Int64?
        /// The rate of each destination. A destination without a rate, here and in ``everything``, is not planned.
        package var destinations: [String: Int64]

        package init(everything: Int64? = nil, destinations: [String: Int64] = [:]) {
            self.everything = everything
            self.destinations = destinations
        }

        package func isKnown(for destination: String) -> Bool {
            (everything ?? destinations[destination] ?? 0) > 0 && destinations[destination] != 0
        }
    }

    /// A period in which one folder's uploads to one destination are sent.
    package struct Step: Hashable, Sendable {
        package enum End: Hashable, Sendable {
            /// All of it is sent.
            case done
            /// It may not continue.
            case held([Hold])
            /// The plan ends here.
            case horizon
        }

        package var from: WallTime
        package var to: WallTime
        package var folder: String
        package var destination: String
        /// The interface by which it has to leave; `nil` where any may be used.
        package var interface: String?
        package var network: NetworkClass
        /// Files that arrive in it.
        package var files: Int64
        /// Bytes of files; headers and the like are not counted.
        package var bytes: Int64
        /// Bytes a second while it is being sent.
        package var rate: Int64
        package var end: End
    }

    /// A hold that kept a queue waiting, and for how long in total, up to the end of the plan.
    package struct Wait: Hashable, Sendable {
        package var hold: Hold
        /// When it began for the first time.
        package var from: WallTime
        package var length: Duration
    }

    /// The result for one queue.
    package struct Outcome: Hashable, Sendable {
        package var folder: String
        package var destination: String
        package var files: Int64
        package var bytes: Int64
        /// When the last upload of it is sent, also after the end of the plan; `nil`: not within ``Plan/longest``, or
        /// unknown.
        package var ends: WallTime?
        /// The amount that is not sent at the end of the plan.
        package var left: Spending
        /// Sorted, the longest first.
        package var waits: [Wait]
        /// How long uploads of it are being sent.
        package var going: Duration
        /// How long it might be sent while others have the slots.
        package var turns: Duration
        /// Why it is unknown when the last upload is sent; empty where it is known, or where it is only not within
        /// ``Plan/longest``.
        package var obstacles: [Obstacle] = []
    }

    /// A reason why part of a queue has no end.
    package struct Obstacle: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            /// The clock is not trusted, and it is unknown when it will be.
            case clock
            /// The speed to the destination is unknown.
            case speed
            /// A quota never leaves enough for a piece that cannot be divided.
            case never
        }

        package var kind: Kind
        package var hold: Hold
        /// The amount that it keeps waiting.
        package var spending: Spending
        /// The quota.
        var line: QuotaState.Line?
    }

    package var from: WallTime
    package var until: WallTime
    /// Sorted by their beginning.
    package var steps: [Step]
    /// One for each queue, in their order.
    package var outcomes: [Outcome]
    /// There was too much to plan, and the plan ends early: at ``until``.
    package var isCut: Bool

    /// One upload that is sent, or a number of uploads of its queue's rest.
    package struct Ended: Hashable, Sendable {
        /// Number of its queue.
        package var queue: Int
        /// Its position in that queue; for the rest, one after the last upload.
        package var place: Int
        package var files: Int64
        package var at: WallTime
    }

    /// - Parameter ended: Called for each upload that is sent before the plan ends.
    package init(_ question: Input, ended: @escaping (Ended) -> Void = { _ in }) {
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

    /// Percent that quotas count in addition to the bytes of files: the headers of full segments over Ethernet, and a
    /// margin.
    package static let overhead: Int64 = 4
    /// Percent that is received for sent bytes: an acknowledgement of every other segment, and a margin; the answers of
    /// each file come in addition.
    package static let answering: Int64 = 3
    package static let answer: Int64 = 1 << 10
    /// How far a plan reaches when the request names no end.
    package static let longest = Duration.seconds(31 * 86_400)
    /// The furthest end that a request may name.
    package static let furthest = Duration.seconds(366 * 86_400)
    /// A queue's rest is sent in at most this many pieces, which bounds the cost of a million files.
    static let pieces: Int64 = 256
    /// Limit on periods and policy evaluations: more than a person reads, and a bound for unforeseen cases.
    static let maxSteps = 4000
    static let maxEvaluations = 20_000
    static let maxEvents = 4_000_000
}
