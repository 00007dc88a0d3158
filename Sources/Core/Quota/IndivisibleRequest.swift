/// A piece of a file that cannot be divided, because a part of it is worth nothing: the body of a request.
package struct IndivisibleRequest: Hashable, Sendable {
    /// Size of the file's largest piece.
    package var bytes: Int64
    /// The configuration keys of the destination that make it smaller, all of them together; empty where there is none.
    package var keys: [String]

    package init(bytes: Int64, keys: [String] = []) {
        self.bytes = bytes
        self.keys = keys
    }

    /// The piece with this cost.
    package init(costing cost: Int64) { self.init(bytes: max(0, cost - Self.request) / 17 * 16) }

    /// The amount that quotas have to leave before it begins.
    package var cost: Int64 { Self.cost(ofBody: bytes) }

    /// Cost of a request without a body: header lines, the handshake, and the server's answer.
    package static let request: Int64 = 16 << 10

    /// Cost of a request with a body of this size: its headers, and a sixteenth for lower layers and retransmissions.
    package static func cost(ofBody count: Int64) -> Int64 { count.addingClamped(count / 16 + request) }
}

extension QuotaState {
    /// The quota that can never leave this many bytes at once, even when it is unused; `nil` where all can. A quota of
    /// 0 is skipped: its own hold says that it allows nothing.
    package func lineTooSmall(_ bytes: Int64, for kind: Class) -> Line? {
        linesTooSmall(bytes, for: kind).first
    }

    /// All such quotas, sorted by the rest, the smallest first.
    package func linesTooSmall(_ bytes: Int64, for kind: Class) -> [Line] {
        lines.filter { $0.counts(kind) && $0.quota.bytes != 0 && $0.neverAllows(bytes) }
            .sorted { $0.maxSendable ?? .max < $1.maxSendable ?? .max }
    }
}

extension QuotaState.Line {
    /// The counted bytes when this many are sent at once, including the bytes that come back for them.
    func counted(_ bytes: Int64) -> Int64 {
        quota.direction.bytes(of: Spending(bytes: bytes, received: Spending.received(for: bytes)))
    }

    /// Bytes that may be sent in a period without other usage; `nil`: bytes are not counted.
    fileprivate var maxSendable: Int64? { quota.bytes.map { quota.direction.sendable(of: $0) } }

    /// Whether it allows less than that at any time.
    package func neverAllows(_ bytes: Int64) -> Bool { maxSendable.map { $0 < bytes } ?? false }

    /// Says for people that a piece is never sent under this quota, and how to change that.
    ///
    /// - Parameters:
    ///   - destination: The destination of the piece.
    ///   - isWhole: It is the whole file.
    package func neverSentText(_ piece: IndivisibleRequest, to destination: String, isWhole: Bool = false) -> String {
        let what =
            isWhole ? "the file, which is sent whole" : "a piece of \(shownBytes(piece.bytes)), which is sent whole"
        var remedies = ["raise the quota"]
        if !piece.keys.isEmpty {
            let keys = piece.keys.map { "`\($0)`" }.joined(separator: " and ")
            remedies.append("make \(keys) of destinations.\(destination) smaller")
        }
        remedies.append("make an exception with `sluice allow --quota`")
        return
            "never under this quota: \(place.words) allows \(quota.byteWords ?? "") (`quotas`), and \(what) or not at all, "
            + "takes \(shownBytes(counted(piece.cost))) with its overhead; \(remedies.joined(separator: ", or "))"
    }
}
