internal import API
internal import Core
internal import Linux
internal import Staging

// Space for files that are handed over as bytes.

extension Stager {
    /// The most receptions at a time: each has a descriptor and a buffer.
    private static let maxReceptions = 16

    /// Waits until the leftovers of an earlier run are removed.
    func beginReception() async throws {
        try await swept.waitForEnd()
        if receptionCount >= Self.maxReceptions {
            throw Refusal(
                .unavailable,
                "\(receptionCount) files are being received already, which is the limit: try again when one is complete"
            )
        }
        receptionCount += 1
    }

    func endReception(_ reservation: StagingBudget.Reservation) {
        receptionCount -= 1
        // Copies that wait for space may have it now. The signal also wakes the check for rest.
        admission.release(reservation)
    }

    /// Promises space for `more` bytes after those that have arrived, in place of the earlier promise.
    ///
    /// - Throws: ``Refusal`` when there is none. It does not wait as copies do: a caller is waiting.
    func change(_ reservation: inout StagingBudget.Reservation, arrived: Int64, more: Int64, of name: String)
        async throws
    {
        let query = admission.beginSpaceQuery()
        guard let now = try await budget() else {
            throw Refusal(
                .unavailable, troubles["staging"]?.text ?? "cannot read the free space of the staging folder")
        }
        // The bytes that have arrived are already subtracted from the free space of the disk.
        let wanted = StagingBudget.Reservation(size: arrived + more, need: more)
        let others = admission.reserved(since: query, without: reservation)
        if let obstacle = now.obstacle(for: FilePath(name), wanted, reserved: others) {
            throw Refusal(.noRoom, now.refusal(of: name, obstacle.changeKey, others, arrived: arrived))
        }
        admission.extend(&reservation, to: wanted)
    }
}

extension StagingBudget {
    /// The reason why bytes that are handed over are refused.
    ///
    /// - Parameter changeKey: The subject from ``obstacle(for:_:reserved:)``.
    fileprivate func refusal(of name: String, _ changeKey: String, _ others: Reservation, arrived: Int64) -> String {
        let file = FilePath(name).display
        if changeKey == "max_size", let cap {
            return
                "\(file) does not fit into the staging folder, which holds \(shownBytes(used + others.size)) of at most "
                + "\(shownBytes(cap)) (`staging.max_size`), after \(shownBytes(arrived)) of it arrived: "
                + "wait until uploads finish, or raise the limit"
        }
        return "not enough space in \(folder.display) for \(file): \(shownBytes(max(0, free - others.need))) free, and "
            + "\(shownBytes(keepFree)) must stay free (`staging.keep_free`): free space, or wait until uploads finish"
    }
}
