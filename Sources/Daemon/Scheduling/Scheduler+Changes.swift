internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Store

// Changes by a person: settings, pauses, and requests to try again at once.

extension Scheduler {
    /// Uploads that wait for a destination are tried at once, since it may work again.
    ///
    /// - Parameters:
    ///   - names: `nil` for every destination.
    ///   - isWanted: Whether a person has asked for it, who may have corrected a secret before: it is read again.
    func reconsider(_ names: Set<String>? = nil, isWanted: Bool = false) async throws {
        for name in house.destinations.keys where names?.contains(name) ?? true {
            health[name]?.reconsider(monotonic: house.clocks.monotonic())
            rooms[name]?.changed()
            if isWanted { house.secrets.renew(of: name) }
            try await house.store.forgetWaits(for: name)
        }
        house.schedulingSignal.signal()
    }

    /// Puts new settings in force. Transfers to destinations in `changed` are stopped and continue by themselves, to
    /// the destination as it is now; other transfers are not touched. Recorded failures of these destinations are
    /// forgotten. A destination that refused its credential is tried again: the credential may be new.
    func take(_ setup: RuntimeConfiguration, changed: Set<String>) async {
        await learnBusy(setup.settings)
        let before = house.settings
        house.replace(setup)
        expiryLook = nil
        stops += 1
        for transfer in transfers.values where changed.contains(transfer.destination) {
            transfer.task.cancel()
            for id in transfer.folders.keys { (consecutiveFailures[id], setbacks[id]) = (nil, nil) }
        }
        for name in changed {
            changes[name, default: 0] += 1
            health[name] = nil
            keyRefusals[name] = nil
            rooms[name] = nil
            roomLooks[name]?.cancel()
        }
        // Transfers that wait for the answer of a program ask the program that is named now.
        let isAnother = !before.beforeUploads.elementsEqual(setup.settings.beforeUploads) { $0 == $1 }
        if isAnother {
            house.pendingApprovals.forget()
            let asking = house.pendingApprovals.asking
            for transfer in transfers.values where !asking.isDisjoint(with: transfer.folders.keys) {
                transfer.task.cancel()
            }
        }
        rooms = rooms.filter { house.destinations[$0.key] != nil }
        let refused = health.filter { $0.value.trouble?.kind == .auth }.map(\.key)
        for name in refused {
            health[name]?.reconsider(monotonic: house.clocks.monotonic())
            keyRefusals[name] = nil
        }
        house.ledger.take(setup.settings)
        await lookAtNetwork()
        for name in isAnother ? Set(house.destinations.keys) : changed.union(refused) {
            do { try await house.store.forgetWaits(for: name) } catch {
                house.log.warning("waits go on as they were", ["destination": name, "reason": "\(error)"])
            }
        }
        house.schedulingSignal.signal()
    }

    /// Stops the transfers of sources that are read in place and that have a newer version on record: recording it has
    /// ended their uploads.
    func stopSuperseded() async throws {
        guard house.live.takeReview() else { return }
        for id in transfers.values.flatMap(\.inPlace) {
            guard let upload = try await house.store.upload(id), upload.ending == .cancelled else { continue }
            if house.live[id] != nil, try await house.store.row(id)?.failure?.code == Failure.sourceChanged {
                house.log.info("given up, since a newer version of its source was taken up", ["id": id])
            }
            cancel([id])
        }
    }

    /// Reads the pauses again after a person has changed them.
    func reloadPauses() async throws {
        pauses = try await house.store.pauses()
        for signal in [house.schedulingSignal, house.removalSignal, house.hookSignal] { signal.signal() }
    }
}
