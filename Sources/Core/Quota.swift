/// How much may be sent in each stretch of the calendar: a rule of `policy`, of a destination or of a folder.
package struct Quota: Hashable, Sendable {
    package enum Network: String, Hashable, Sendable, Codable, CaseIterable {
        case any
        /// Counts and holds only what goes over metered networks.
        case metered
    }

    package var period: Period
    /// All that is sent: retransmissions, queries and headers included. 0: nothing.
    package var bytes: Int64?
    /// Files that are begun: what is under way when the last of them is used up goes on to its end.
    package var files: Int64?
    package var network: Network

    package init(period: Period, bytes: Int64? = nil, files: Int64? = nil, network: Network = .any) {
        self.period = period
        self.bytes = bytes
        self.files = files
        self.network = network
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

    package var byteWords: String? { bytes.map { "\(Self.amount($0)) \(span)" } }
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

/// What was sent, or is about to be.
package struct Spending: Hashable, Sendable, Codable {
    /// Retransmissions and headers included.
    package var bytes: Int64
    package var files: Int64

    package static let none = Spending()

    package init(bytes: Int64 = 0, files: Int64 = 0) {
        self.bytes = bytes
        self.files = files
    }

    package static func + (a: Spending, b: Spending) -> Spending {
        Spending(bytes: a.bytes.addingClamped(b.bytes), files: a.files.addingClamped(b.files))
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
