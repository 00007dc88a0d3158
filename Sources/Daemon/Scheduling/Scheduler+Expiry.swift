internal import Config
internal import Core
internal import Linux
internal import Store

// Uploads that have waited for too long.

extension Scheduler {
    /// Uploads that end in one transaction.
    private static let expiredAtOnce = 200

    /// Ends uploads that are too old by `expires_after`, and finds out when to look again. Running uploads are not
    /// touched, and a clock that is not trusted makes no upload too old.
    func expire() async throws {
        guard let shortest = house.settings.allRules.compactMap(\.expiresAfter).min(), clockTrouble == nil else {
            expiryLook = nil
            return
        }
        let now = house.clocks.wall()
        if let expiryLook, now < expiryLook { return }
        // An upload that is found from now on is not too old before.
        var next = now.advanced(by: shortest)
        // Set before the search, so that a reset of it during the search leads to another one.
        expiryLook = next
        var isOver = false
        defer { if !isOver { expiryLook = nil } }
        let waiting = try await house.store.classes().filter { $0.state == .staging || $0.state == .queued }
        var hasEnded = false
        for upload in Set(waiting.map(\.upload)) {
            guard let expiry = expiry(of: upload) else { continue }
            while true {
                let aged = try await house.store.aged(
                    upload, by: expiry, oldest: Self.oldestClock, most: Self.expiredAtOnce)
                if let time = aged.next { next = min(next, time) }
                if aged.ids.isEmpty { break }
                let ended = try await house.store.expire(aged.ids)
                if ended.isEmpty { break }
                hasEnded = true
                ended.forEach(tellExpired)
            }
        }
        if expiryLook != nil { expiryLook = next }
        isOver = true
        if hasEnded {
            for signal in [house.removalSignal, house.releaseSignal, house.stagingSignal] { signal.signal() }
        }
    }

    private func expiry(of upload: UploadClass) -> Expiry? {
        Expiry(
            house.settings.policy.rules, house.settings(ofDestination: upload.destination)?.policy.rules,
            house.folder(upload.folder)?.policy.rules)
    }

    private func tellExpired(_ row: UploadRow) {
        house.log.notice(
            "expired, not sent",
            [
                "id": row.upload.id, "destination": row.upload.destination, "path": row.asset.path.display,
                "found": row.upload.createdAt.description,
            ])
    }
}
