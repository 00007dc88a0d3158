internal import Config
internal import Core
internal import Linux
internal import Store

/// Ends uploads that are too old by `expires_after`.
struct ExpirySweep {
    let context: Context

    /// Uploads that end in one transaction.
    private static let atOnce = 200

    /// - Parameter shortest: The shortest `expires_after`: an upload that is found from now on is not too old before.
    /// - Returns: No upload gets too old before this time.
    func run(now: WallTime, shortest: Duration) async throws -> WallTime {
        var next = now.advanced(by: shortest)
        let waiting = try await context.store.read { try $0.lists.classes() }.filter {
            $0.state == .staging || $0.state == .queued
        }
        for upload in Set(waiting.map(\.upload)) {
            guard let expiry = expiry(of: upload) else { continue }
            while true {
                let aged = try await context.store.read {
                    try $0.lists.expiredUploads(
                        upload, by: expiry, oldest: ClockMonitor.oldestClock, most: Self.atOnce)
                }
                if let time = aged.next { next = min(next, time) }
                if aged.ids.isEmpty { break }
                let ended = try await context.store.write { try $0.transitions.expire(aged.ids) }
                if ended.isEmpty { break }
                ended.forEach(report)
            }
        }
        return next
    }

    private func expiry(of upload: UploadClass) -> Expiry? {
        Expiry(
            context.settings.policy.rules,
            context.configuration.settings(ofDestination: upload.destination)?.policy.rules,
            context.configuration.folder(upload.folder)?.policy.rules)
    }

    private func report(_ row: UploadRow) {
        context.log.notice(
            "upload expired, not sent",
            [
                "id": row.upload.id, "destination": row.upload.destination, "path": row.asset.path.display,
                "found": row.upload.createdAt.description,
            ])
    }
}
