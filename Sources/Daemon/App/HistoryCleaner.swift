internal import Config
internal import Core
internal import Linux
internal import Store

/// Keeps the lists of ended work short, and removes entries that have been in the history for long enough.
///
/// It sleeps until the next entry is due, or until more work ends.
struct HistoryCleaner: Sendable {
    let context: Context
    let stateHealth: StateHealth
    /// Wakes it: more work has ended.
    let signal: AsyncSignal

    private static let pause: Duration = .seconds(1)
    /// Uploads in one transaction.
    private static let piece = 200

    func run() async throws {
        while !Task.isCancelled {
            var next: Duration?
            do { next = try await clean() } catch let error as StoreError {
                stateHealth.failed(error)
                next = .seconds(5)
            }
            await signal.wait(atMost: next.map { $0 - Self.pause })
            // There is no hurry here: entries that end in a burst are handled together.
            try await Alarms.shared.sleep(for: Self.pause)
        }
    }

    /// - Returns: The time until there is something to do again, if nothing happens until then.
    private func clean() async throws -> Duration? {
        let lists = context.settings.lists
        var next: [Duration?] = []
        for (list, limits) in [
            (UploadState.completed, lists.completed), (.failed, lists.failed), (.cancelled, lists.cancelled),
        ] {
            next.append(try await shorten(list, limits))
        }
        if let time = lists.history { next.append(try await forget(after: time)) }
        // Rounded up: a run that comes too early does nothing.
        return next.compactMap { $0 }.min().map { max(.seconds(1), $0 + .milliseconds(1)) }
    }

    private func shorten(_ list: UploadState, _ limits: ListRetention.Limits) async throws -> Duration? {
        while !Task.isCancelled {
            let found = try await context.store.read {
                try $0.lists.uploadsToDismiss(list, by: limits, most: Self.piece)
            }
            if found.ids.isEmpty { return found.next }
            for (reason, ones) in Dictionary(grouping: found.ids, by: \.reason) {
                _ = try await context.store.write { try $0.transitions.dismiss(ones.map(\.id), reason) }
                context.log.info(
                    "uploads removed from a list",
                    ["list": list.list.rawValue, "reason": reason.rawValue, "count": "\(ones.count)"])
            }
        }
        return nil
    }

    private func forget(after time: Duration) async throws -> Duration? {
        let folders = Set(context.settings.folders.filter(\.retention.isLimited).map(\.watch.name))
        var from: (ran: Int64, id: String)?
        while !Task.isCancelled {
            let (last, next) = try await context.store.forget(
                after: time, from: from, keepingSourcesOf: folders, most: Self.piece)
            guard let last else { return next }
            from = last
        }
        return nil
    }
}
