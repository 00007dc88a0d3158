/// How much may be sent or received in each period of the calendar: a rule of `policy`, of a destination or of a
/// folder.
package struct Quota: Hashable, Sendable {
    /// The direction of bytes that count.
    package enum Direction: String, Hashable, Sendable, Codable, CaseIterable {
        case sent, received, both

        /// The bytes of `spending` that count.
        package func bytes(of spending: Spending) -> Int64 {
            switch self {
            case .sent: spending.bytes
            case .received: spending.received
            case .both: spending.bytes.addingClamped(spending.received)
            }
        }

        /// How many bytes may be sent when `left` bytes are left, after a reservation for everything that comes back.
        func sendable(of left: Int64) -> Int64 {
            switch self {
            case .sent: left
            case .received: min(max(0, left - Spending.answer), .max / Spending.acknowledging) * Spending.acknowledging
            case .both:
                max(0, left - Spending.answer) / (Spending.acknowledging + 1) * Spending.acknowledging
            }
        }

        /// `sent and received`: a phrase for bytes that count.
        package var words: String { self == .both ? "sent and received" : rawValue }
    }

    /// Whose bytes count.
    package enum Count: String, Hashable, Sendable, Codable, CaseIterable {
        /// Those that Sluice sends and receives.
        case ours
        /// Those of every program: all that the interfaces carry which the condition describes, in both directions, by
        /// the kernel's counters.
        case interface
    }

    /// The name of its count; only with a condition.
    package var name: String?
    /// For ``bytes``.
    package var count = Count.ours
    /// What counts: that of which the condition holds, or is unknown. `nil`: everything.
    package var when: Condition?
    /// Where the configuration has it: `sluice.yaml:12`.
    package var place = ""
    package var period: Period
    /// All traffic in the direction of ``direction``, including retransmissions, queries and headers. 0: nothing is
    /// allowed.
    package var bytes: Int64?
    /// Files that are begun. When the quota is used up, a running upload continues to its end.
    package var files: Int64?
    /// For ``bytes``; ``files`` are independent of it.
    package var direction: Direction

    package init(
        period: Period, bytes: Int64? = nil, files: Int64? = nil, direction: Direction = .sent,
        name: String? = nil, when: Condition? = nil, count: Count = .ours
    ) {
        self.count = count
        self.name = name
        self.when = when
        self.period = period
        self.bytes = bytes
        self.files = files
        self.direction = direction
    }

    /// Whether it never has room.
    package var allowsNothing: Bool { bytes == 0 || files == 0 }

    /// Regardless of its place: a line more before it changes nothing.
    package static func == (one: Quota, other: Quota) -> Bool {
        one.name == other.name && one.when == other.when && one.period == other.period && one.bytes == other.bytes
            && one.files == other.files && one.direction == other.direction && one.count == other.count
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(when)
        hasher.combine(period)
        hasher.combine(bytes)
        hasher.combine(files)
        hasher.combine(direction)
        hasher.combine(count)
    }

    /// A rest smaller than this counts as used up, because a transfer that began with it would only ask for its offset
    /// and stop, again and again. It pays for a connection, a question, and a piece of a file that is worth its
    /// request.
    package static let minUsable: Int64 = 96 << 10

    /// The smallest limit that a configuration may set, so that most of it can be used.
    package static let minConfigured = 3 * minUsable

    /// `20 GB a day`, `500 files a month while the network is metered`: of one of its limits, or of both.
    package var words: String { [byteWords, fileWords].compactMap { $0 }.joined(separator: ", ") }

    package var byteWords: String? {
        bytes.map { Self.amount($0) + (counted.isEmpty ? "" : " \(counted)") + " \(span)" }
    }
    package var fileWords: String? { files.map { "\($0) \($0 == 1 ? "file" : "files") \(span)" } }

    /// Which bytes count: a phrase; empty for those that Sluice sends.
    private var counted: String {
        if count == .interface { return "of all programs" }
        return direction == .sent ? "" : direction.words
    }

    private var span: String { period.words + (when.map { " while \($0.words)" } ?? "") }

    /// In the form that a person writes: `20 GB`, where other places show `20.0 GB`.
    private static func amount(_ bytes: Int64) -> String {
        let parts = shownBytes(bytes).split(separator: " ")
        guard parts.count == 2, parts[0].hasSuffix(".0") else { return shownBytes(bytes) }
        return "\(parts[0].dropLast(2)) \(parts[1])"
    }
}

extension Period {
    /// `a day`.
    package var words: String {
        switch self {
        case .hour: "an hour"
        case .day: "a day"
        case .week: "a week"
        case .month: "a month"
        }
    }
}

/// Amounts that were sent and received, or will be.
package struct Spending: Hashable, Sendable, Codable {
    /// Sent bytes, including retransmissions and headers.
    package var bytes: Int64
    /// Received bytes, including headers: answers, acknowledgements, handshakes.
    package var received: Int64
    package var files: Int64

    package static let none = Spending()

    /// An acknowledgement for every segment is at most a twentieth of the acknowledged bytes; two of three segments
    /// have none.
    static let acknowledging: Int64 = 16
    /// A handshake with its certificates, and an answer.
    static let answer: Int64 = 16 << 10

    /// Bytes that may be received while this many are sent.
    package static func received(for bytes: Int64) -> Int64 { (bytes / acknowledging).addingClamped(answer) }

    package init(bytes: Int64 = 0, received: Int64 = 0, files: Int64 = 0) {
        self.bytes = bytes
        self.received = received
        self.files = files
    }

    package static func + (a: Spending, b: Spending) -> Spending {
        Spending(
            bytes: a.bytes.addingClamped(b.bytes), received: a.received.addingClamped(b.received),
            files: a.files.addingClamped(b.files))
    }
    package static func += (a: inout Spending, b: Spending) { a = a + b }
}

/// The ledger's classification of the network that carried bytes.
package enum NetworkClass: String, Hashable, Sendable, Codable, CaseIterable {
    case unmetered, unknown, metered
    /// None: the bytes stayed on this machine. No quota counts them.
    case local
    /// The network was not looked up, since no rule depends on it.
    case any
    /// No network: a row of the count of a quota with a condition. Other rows have the same bytes.
    case quota

    /// Rows of traffic.
    package static let traffic: Set<NetworkClass> = Set(allCases).subtracting([.quota])
    /// The networks that quotas count: all by which bytes may have left this machine.
    package static let counting: Set<NetworkClass> = traffic.subtracting([.local])
}

/// The count of a quota with a condition, by its name in its place.
package struct QuotaName: Hashable, Sendable {
    /// The place of the configuration: `policy`, `destinations.nas`.
    package var place: String
    package var name: String

    package init(_ place: RulePlace, _ name: String) {
        self.place = place.words
        self.name = name
    }

    /// - Parameter key: A value of ``key``; `nil` for another text.
    package init?(key: some StringProtocol) {
        guard let space = key.lastIndex(of: " "), space > key.startIndex else { return nil }
        place = String(key[..<space])
        name = String(key[key.index(after: space)...])
        if name.isEmpty { return nil }
    }

    /// In one text: `destinations.nas lte-plan`. No name has a space.
    package var key: String { "\(place) \(name)" }

    /// Its rows in the ledger.
    package var account: SpendingAccount { SpendingAccount(destination: place, folder: name, network: .quota) }
}

/// The folder, destination and network for which bytes are counted.
package struct SpendingAccount: Hashable, Sendable {
    package var destination: String
    /// `nil`: traffic for no file, such as a check of whether a destination is reachable.
    package var folder: String?
    package var network: NetworkClass

    package init(destination: String, folder: String?, network: NetworkClass) {
        self.destination = destination
        self.folder = folder
        self.network = network
    }
}
