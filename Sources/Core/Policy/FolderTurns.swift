/// The order in which uploads of one priority are sent from one folder to one destination.
package enum UploadOrdering: String, Hashable, Sendable, CaseIterable {
    case newestFirst = "newest-first"
    case oldestFirst = "oldest-first"
    case smallestFirst = "smallest-first"
    case largestFirst = "largest-first"
    /// The newest first; small files and all others take turns.
    case mixed

    /// Which files are small in mixed order.
    package static let isSmall = FilePredicate.smallerThan(16_000_000)

    /// The sort value; a lower one is sent first.
    ///
    /// - Parameters:
    ///   - size: In bytes.
    ///   - modified: In ns since 1970.
    package func value(size: Int64, modified: Int64) -> Int64 {
        switch self {
        case .newestFirst, .mixed: -modified
        case .oldestFirst: modified
        case .smallestFirst: size
        case .largestFirst: -size
        }
    }
}

/// Chooses which folder sends next to one destination: of the highest priority, the one whose last turn is longest ago.
/// A turn is a transfer: one file, or a bundle of small ones.
///
/// It is stored together with the uploads, so that a machine which restarts again and again serves no folder twice in a
/// row while another waits.
package struct FolderTurns: Hashable, Sendable {
    /// The next upload of a folder.
    package struct Offer<ID: Hashable & Comparable & Sendable>: Hashable, Sendable {
        package var folder: String
        /// A lower rank goes first, before turns are compared.
        package var rank: Int64
        /// The oldest upload has the lowest id.
        package var id: ID

        package init(folder: String, rank: Int64, id: ID) {
            self.folder = folder
            self.rank = rank
            self.id = id
        }
    }

    /// The files of a folder in mixed order, which take turns within those of the folder.
    package enum Share: String, Hashable, Sendable {
        case small, other
    }

    /// The number of each folder's last turn, and of each share's in a folder, from 1.
    package private(set) var last: [String: Int] = [:]
    private var count = 0

    package init() {}

    /// - Parameter last: An earlier value of ``last``. Numbers that counting never reaches, from a damaged disk, are
    ///   made smaller and keep their order.
    package init(last: [String: Int]) {
        self.last = last
        if !last.values.allSatisfy((0...1 << 53).contains) {
            let order = Set(last.values).sorted()
            self.last = last.mapValues { (order.firstIndex(of: $0) ?? 0) + 1 }
        }
        count = self.last.values.max() ?? 0
    }

    /// The offer whose turn it is. Among folders without a turn so far it is the one with the oldest upload.
    package func next<ID>(_ offers: some Sequence<Offer<ID>>) -> Offer<ID>? {
        offers.min { key($0) < key($1) }
    }

    /// The offer of the folder that had the last turn, when no upload of a higher priority waits.
    package func nextOfSameFolder<ID>(_ offers: some Sequence<Offer<ID>>) -> Offer<ID>? {
        guard let rank = offers.lazy.map(\.rank).min() else { return nil }
        return offers.first { $0.rank == rank && last[$0.folder] == count && count > 0 }
    }

    /// The number of the last turn of a share; 0 for none.
    package func last(of share: Share, in folder: String) -> Int { last[Self.name(share, folder)] ?? 0 }

    // No folder has a `/` in its name.
    private static func name(_ share: Share, _ folder: String) -> String { "\(folder)/\(share.rawValue)" }

    private func key<ID>(_ offer: Offer<ID>) -> (Int64, Int, ID, String) {
        (offer.rank, last[offer.folder] ?? 0, offer.id, offer.folder)
    }

    /// - Parameter share: In a folder in mixed order.
    package mutating func recordTurn(_ folder: String, _ share: Share? = nil) {
        count += 1
        last[folder] = count
        if let share { last[Self.name(share, folder)] = count }
    }
}
