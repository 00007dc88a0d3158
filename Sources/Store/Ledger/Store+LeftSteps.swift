package import Core
package import Linux

// What was reserved by a run that did not settle it.

extension Schema {
    static let stepLinks = """
        -- What every link had sent and received when the step was opened (LinkBytes).
        ALTER TABLE usage_step ADD COLUMN links TEXT;
        """

    static let received = """
        -- What has come in, beside what was sent; of a step, what may come in.
        ALTER TABLE usage ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE usage_step ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
        """
}

extension Store {
    /// What the links of this machine have sent and received.
    package enum LinkQuestion: Sendable {
        /// So far.
        case now
        /// When nothing of an earlier run is yet to leave; else there is no answer.
        case whenQuiet
    }

    /// No answers.
    package static let askNobody: @Sendable (LinkQuestion) -> LinkBytes? = { _ in nil }

    /// Answers of the kernel.
    package static func askKernel(_ clocks: any Clocks) -> @Sendable (LinkQuestion) -> LinkBytes? {
        { question in
            if question == .whenQuiet, LinkBytes.isStillSending { return nil }
            return LinkBytes(at: clocks.monotonic())
        }
    }

    /// What the links have sent and received so far; `nil` where nobody tells.
    package nonisolated func linksNow() -> LinkBytes? { linkBytes(.now) }

    /// What a killed run had given to the kernel leaves after its end, which takes a moment where the next run begins at once.
    func awaitQuietLinks() async throws {
        let isLeft = try connection.first("SELECT 1 FROM usage_step WHERE links IS NOT NULL LIMIT 1") { _ in true }
        guard isLeft == true, linkBytes(.now) != nil else { return }
        for _ in 0..<20 where linkBytes(.whenQuiet) == nil { try await Alarms.shared.sleep(for: .milliseconds(50)) }
    }

    /// Inside a transaction: what an earlier run has reserved and not settled was sent, and came; but no more of it than has left this machine or come to it
    /// since, where that can be told.
    func closeLeftSteps() throws {
        let left = try connection.all(
            "SELECT hour, destination, folder, network, bytes, files, links, received FROM usage_step"
        ) { row in
            (
                hour: WallTime(milliseconds: row.integer(0)),
                account: SpendingAccount(
                    destination: row.text(1), folder: row.text(2).isEmpty ? nil : row.text(2),
                    network: NetworkClass(rawValue: row.text(3)) ?? .unknown),
                spending: Spending(bytes: row.integer(4), received: row.integer(7), files: row.integer(5)),
                links: row.optionalText(6).flatMap { LinkBytes($0) }
            )
        }
        if left.isEmpty { return }
        let links = linkBytes(.whenQuiet)
        // What all steps of one account can have sent together is no more than what left since the first of them was opened; and so it is
        // with what came.
        var most: [SpendingAccount: Spending] = [:]
        for (account, steps) in Dictionary(grouping: left, by: \.account) {
            let bounds = steps.map { step in step.links.flatMap { links?.most(since: $0) } }
            if !bounds.contains(nil) {
                let all = bounds.compactMap { $0 }
                most[account] = Spending(
                    bytes: all.map(\.bytes).max() ?? 0, received: all.map(\.received).max() ?? 0)
            }
        }
        for step in left {
            var spending = step.spending
            if let before = step.links, let own = links?.most(since: before) {
                spending.bytes = min(spending.bytes, own.bytes)
                spending.received = min(spending.received, own.received)
            }
            if let all = most[step.account] {
                spending.bytes = min(spending.bytes, all.bytes)
                spending.received = min(spending.received, all.received)
                most[step.account] = Spending(
                    bytes: all.bytes - spending.bytes, received: all.received - spending.received)
            }
            // It may have been sent until a moment ago; but a clock that is not set yet says nothing of that.
            let time = max(step.hour, clocks.wall())
            try enter(spending, step.account, Period.hour.interval(around: time, in: zone))
        }
        try connection.run("DELETE FROM usage_step")
    }
}
