/// A piece of a file that is worth nothing where it is cut, and so goes whole or not at all: the body of a request.
package struct UncutPiece: Hashable, Sendable {
    /// Of the largest of the file's pieces.
    package var bytes: Int64
    /// The destination's keys that make it smaller, all of them together; empty where none does.
    package var keys: [String]

    package init(bytes: Int64, keys: [String] = []) {
        self.bytes = bytes
        self.keys = keys
    }

    /// The one that takes so much.
    package init(costing cost: Int64) { self.init(bytes: max(0, cost - Self.request) / 17 * 16) }

    /// What quotas have to leave before it begins.
    package var cost: Int64 { Self.cost(ofBody: bytes) }

    /// Of a request without a body: header lines, the handshake, and what the server's answer costs.
    package static let request: Int64 = 16 << 10

    /// What a request with so long a body takes: its headers, and a sixteenth for what carries it and is sent twice.
    package static func cost(ofBody count: Int64) -> Int64 { count.addingClamped(count / 16 + request) }
}

extension QuotaBook {
    /// The quota that can never leave so many bytes at once, however little is used of it; `nil` where all can. One of nothing is not
    /// looked at: it says itself that it allows nothing.
    package func neverLeaves(_ bytes: Int64, for kind: Class) -> Line? {
        allNeverLeaving(bytes, for: kind).first
    }

    /// All such quotas, the one that leaves the least first.
    package func allNeverLeaving(_ bytes: Int64, for kind: Class) -> [Line] {
        lines.filter { $0.counts(kind) && $0.quota.bytes != 0 && $0.neverLeaves(bytes) }
            .sorted { $0.mostSendable ?? .max < $1.mostSendable ?? .max }
    }
}

extension QuotaBook.Line {
    /// What so many bytes that are sent at once count here, with what comes back for them.
    func counted(_ bytes: Int64) -> Int64 {
        quota.direction.bytes(of: Spending(bytes: bytes, received: Spending.received(for: bytes)))
    }

    /// Bytes that may be sent in a stretch in which nothing else was; `nil`: bytes are not counted.
    fileprivate var mostSendable: Int64? { quota.bytes.map { quota.direction.sendable(of: $0) } }

    /// Whether it allows less than that at any time.
    package func neverLeaves(_ bytes: Int64) -> Bool { mostSendable.map { $0 < bytes } ?? false }

    /// That a piece never goes under this quota, and what would let it, for people.
    ///
    /// - Parameters:
    ///   - destination: Whose the piece is.
    ///   - isWhole: It is the whole file.
    package func never(_ piece: UncutPiece, to destination: String, isWhole: Bool = false) -> String {
        let what = isWhole ? "the file, which goes whole" : "a piece of \(shownBytes(piece.bytes)), which goes whole"
        var remedies = ["raise the quota"]
        if !piece.keys.isEmpty {
            let keys = piece.keys.map { "`\($0)`" }.joined(separator: " and ")
            remedies.append("make \(keys) of destinations.\(destination) smaller")
        }
        remedies.append("let it go once with `sluice allow --quota`")
        return
            "never under this quota: \(place.words) allows \(quota.byteWords ?? "") (`quotas`), and \(what) or not at all, "
            + "takes \(shownBytes(counted(piece.cost))) with what carries it; \(remedies.joined(separator: ", or "))"
    }
}
