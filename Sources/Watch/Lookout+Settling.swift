internal import Core
internal import Linux

// Looks at candidates when they are due, and hands on what settled.

extension Lookout {
    /// Between two tries to look at a file that cannot be looked at now.
    private static let again = Duration.milliseconds(100)

    func settle() {
        let due = settling.due(at: now, limit: max(0, pace.batch - ready.count))
        if !due.isEmpty { hasNews = true }
        for place in due { look(at: place) }
    }

    private func look(at place: Place) {
        let directory = place.directory
        if directory.isGone { return settling.forget(place) }
        guard let folder = directory.relative else {
            return settling.postpone(place, until: now.advanced(by: Self.again))
        }
        // Asked anew, because the directory may have another name by now.
        let winner = place.name.bytes.withUnsafeBufferPointer {
            directory.root.claimants.winner(for: $0, in: folder, of: directory.root, rules: rules)
        }
        guard let index = winner else { return settling.forget(place) }
        let rule = rules[index].settings
        let relative = folder.appending(place.name)
        let path = directory.root.path.appending(relative)
        do {
            let (look, writer) =
                rule.writers == .lease ? try Lease.look(at: path) : (try FileLook(at: path), OpenWriter.unknown)
            guard look.isRegular else { return settling.forget(place) }
            guard let settledBy = settling.looked(at: place, look, writer: writer, at: clocks.monotonic()) else {
                return
            }
            let fileSystem = fileSystems.identity(at: path, device: look.device)
            let file = SettledFile(
                folder: rule.name, root: rule.path, relative: relative, look: look,
                identity: StoredIdentity(look, folder: rule.name, relative: relative, on: fileSystem),
                settledBy: settledBy)
            // A file may settle twice before anybody takes it, when a scan and an event both told of it. The last counts:
            // within one batch nobody could tell that the other is known by then.
            if let index = ready.firstIndex(where: { $0.place == place }) { ready.remove(at: index) }
            ready.append((place, file))
        } catch {
            // A name that is gone, or is a link by now, is nothing to talk about.
            if error.isMissing || error.isLink { return settling.forget(place) }
            log("cannot look at a file (\(error)); trying again in \(pace.absent)")
            settling.postpone(place, until: now.advanced(by: pace.absent))
        }
    }

    /// One delivery at a time; the next when that is taken.
    func passOn() {
        guard !isDelivering else { return }
        if let delivery = outbox.popFirst() {
            isDelivering = true
            deliver(delivery)
        } else if !ready.isEmpty {
            let batch = Array(ready.prefix(pace.batch))
            ready.removeFirst(batch.count)
            isDelivering = true
            deliver(.settled(batch.map(\.file)))
        }
    }
}
