package import Core

/// Thrown when this process no longer holds the upload's lease.
package struct LeaseLostError: Error, Sendable {}

extension Store {
    /// Claims the next upload for `destination` and leases it to this run.
    ///
    /// Folders take turns (``FolderTurns``); within a folder its order decides.
    ///
    /// - Parameters:
    ///   - folders: Paused folders, which are passed over.
    ///   - alike: Folders that skip duplicates. An upload from one of them waits for another of the same content that
    ///     runs to the same destination, and is completed without sending once that is done.
    ///   - onRepeat: Called with the assets that were completed in this way, after that is durable.
    /// - Returns: `nil` when none may go now.
    package func claim(
        _ destination: String, passingOver folders: [String], skippingDuplicatesOf alike: [String] = [],
        onRepeat: @Sendable (AssetRecord) -> Void = { _ in }
    ) async throws -> Claim? {
        try await claim(
            filling: BatchLimits(slots: 1), destination, from: { !folders.contains($0.folder) },
            skippingDuplicatesOf: alike, onRepeat: onRepeat
        ).first
    }

    /// As ``claim(_:passingOver:skippingDuplicatesOf:onRepeat:)``, for as many uploads as fit.
    ///
    /// - Parameters:
    ///   - isOpen: Whether uploads of these files may be claimed.
    ///   - begunOnly: Files whose uploads are claimed only if they have begun.
    ///   - passed: Uploads that are passed over; few.
    ///   - left: Free bytes at the destination: uploads that lack more there are passed over; `nil` when unknown.
    ///   - reserving: The bytes that each of them may send first, in the same transaction; `nil` for nothing.
    package func claim(
        filling limits: BatchLimits, _ destination: String, from isOpen: @Sendable (FileClass) -> Bool,
        begunOnly: Set<FileClass> = [], besides passed: Set<String> = [], within left: Int64? = nil,
        skippingDuplicatesOf alike: [String] = [], reserving: @Sendable (Claim) -> Reservation? = { _ in nil },
        onRepeat: @Sendable (AssetRecord) -> Void = { _ in }
    ) async throws -> [Claim] {
        // Checked outside a write first, so that an idle scheduler writes nothing.
        let isAny = try read { tx in
            try !tx.queue.offers(
                to: destination, from: isOpen, begunOnly: begunOnly, besides: passed, within: left, alike: alike
            ).isEmpty
        }
        guard isAny else { return [] }
        let (claims, repeats) = try await write { tx in
            try tx.queue.claim(
                filling: limits, destination, from: isOpen, begunOnly: begunOnly, besides: passed, within: left,
                skippingDuplicatesOf: alike, reserving: reserving)
        }
        repeats.forEach(onRepeat)
        return claims
    }

    /// Claims one upload for its destination, if it is queued and not paused, whatever stands before it in the queue.
    /// Otherwise as
    /// ``claim(filling:_:from:begunOnly:besides:within:skippingDuplicatesOf:reserving:onRepeat:)``.
    ///
    /// - Parameter alike: Folders that skip duplicates: uploads from these are left to the ordinary claim.
    package func claim(
        only id: String, skippingDuplicatesOf alike: [String], reserving: @Sendable (Claim) -> Reservation?
    ) async throws -> Claim? {
        // Checked outside a write first, so that an idle scheduler writes nothing.
        guard try read({ tx in try tx.queue.ready(id, skippingDuplicatesOf: alike) }) != nil else { return nil }
        return try await write { tx in
            try tx.queue.claim(only: id, skippingDuplicatesOf: alike, reserving: reserving)
        }
    }
}
