/// How much may be sent, or may come in, in each stretch of the calendar: a rule of `policy`, of a destination or of a folder.
package struct Quota: Hashable, Sendable {
    package enum Network: String, Hashable, Sendable, Codable, CaseIterable {
        case any
        /// Counts and holds only what goes over metered networks.
        case metered
    }

    /// Which way bytes go that count.
    package enum Direction: String, Hashable, Sendable, Codable, CaseIterable {
        case sent, received, both

        /// Those of `spending` that count.
        package func bytes(of spending: Spending) -> Int64 {
            switch self {
            case .sent: spending.bytes
            case .received: spending.received
            case .both: spending.bytes.addingClamped(spending.received)
            }
        }

        /// How many bytes may be sent where so many are left, with what is set aside for all that comes back.
        func sendable(of left: Int64) -> Int64 {
            switch self {
            case .sent: left
            case .received: min(max(0, left - Spending.answer), .max / Spending.acknowledging) * Spending.acknowledging
            case .both:
                max(0, left - Spending.answer) / (Spending.acknowledging + 1) * Spending.acknowledging
            }
        }

        /// `sent and received`: what was done with bytes that count.
        package var words: String { self == .both ? "sent and received" : rawValue }
    }

    package var period: Period
    /// All that goes the way of ``direction``: retransmissions, queries and headers included. 0: nothing.
    package var bytes: Int64?
    /// Files that are begun: what is under way when the last of them is used up goes on to its end.
    package var files: Int64?
    package var network: Network
    /// Of ``bytes``; files are files.
    package var direction: Direction

    package init(
        period: Period, bytes: Int64? = nil, files: Int64? = nil, network: Network = .any,
        direction: Direction = .sent
    ) {
        self.period = period
        self.bytes = bytes
        self.files = files
        self.network = network
        self.direction = direction
    }

    /// What is left of one that is less than this is too little for anything, and counts as used up: a transfer that began with
    /// it would only ask how far it is, and stop, again and again. It pays for a connection, a question, and a piece of a
    /// file worth its request.
    package static let least: Int64 = 96 << 10

    /// The least that a configuration may allow, so that most of it can be used.
    package static let leastConfigured = 3 * least

    /// Whether it is about what goes over such a network.
    package func counts(isMetered: Bool) -> Bool { network == .any || isMetered }

    /// `20 GB a day`, `500 files a month over metered networks`: of one of its limits, or of both.
    package var words: String { [byteWords, fileWords].compactMap { $0 }.joined(separator: ", ") }

    package var byteWords: String? {
        bytes.map { Self.amount($0) + (direction == .sent ? "" : " \(direction.words)") + " \(span)" }
    }
    package var fileWords: String? { files.map { "\($0) \($0 == 1 ? "file" : "files") \(span)" } }

    private var span: String { period.words + (network == .metered ? " over metered networks" : "") }

    /// As a person writes it: `20 GB`, where others read `20.0 GB`.
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

/// What was sent and has come in, or is about to.
package struct Spending: Hashable, Sendable, Codable {
    /// That were sent; retransmissions and headers included.
    package var bytes: Int64
    /// That have come in, headers included: answers, acknowledgements, handshakes.
    package var received: Int64
    package var files: Int64

    package static let none = Spending()

    /// An acknowledgement of every segment is a twentieth of what it acknowledges at the most; two of three segments have none.
    static let acknowledging: Int64 = 16
    /// A handshake with its certificates, and an answer.
    static let answer: Int64 = 16 << 10

    /// Bytes that may come in while so many are sent.
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

/// What the ledger knows of the network that bytes went over.
package enum NetworkClass: String, Hashable, Sendable, Codable, CaseIterable {
    case unmetered, unknown, metered
    /// None: it stayed on this machine. No quota counts it.
    case local
    /// Nobody asked, since no rule depends on it.
    case any
}

/// In whose name something is sent, and over what.
package struct SpendingAccount: Hashable, Sendable {
    package var destination: String
    /// `nil`: for no file, such as a look at whether a destination is there.
    package var folder: String?
    package var network: NetworkClass

    package init(destination: String, folder: String?, network: NetworkClass) {
        self.destination = destination
        self.folder = folder
        self.network = network
    }
}
