internal import Core
internal import Store

// Pauses that let the parts that are being sent arrive.

/// The subject of a pause that is not about a single upload.
struct PausedPlace: Hashable, Sendable {
    var scope: PauseRecord.Scope
    /// Empty for all uploads.
    var name: String
}

extension Scheduler {
    /// Marks the pauses of these places, which are about to be set, as gentle: they cut no running transfer.
    func spare(_ places: [PausedPlace]) { draining.formUnion(places) }

    /// Unmarks the pauses of these places: they cut running transfers, or are over.
    func spareNoMore(_ places: [PausedPlace]) { draining.subtract(places) }

    /// Running uploads that match `isMeant` end after the parts that are being sent. A transfer that is not sending yet
    /// ends at once.
    func stopAfterPart(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        // Uploads that are being claimed now are given back.
        stops += 1
        for transfer in transfers.values {
            let meant = transfer.folders.filter { isMeant($0.key, transfer.destination, $0.value) }
            if meant.isEmpty { continue }
            house.live.pause(afterPart: meant.keys)
            if transfer.folders.keys.allSatisfy({ house.live[$0] == nil }) { transfer.task.cancel() }
        }
    }

    /// Uploads that were to end after their parts, and that no pause holds any more, continue as if there had been no
    /// pause.
    func takeBackWishes() async throws {
        for id in house.live.pausing {
            guard let transfer = transfers.values.first(where: { $0.folders[id] != nil }),
                let folder = transfer.folders[id]
            else { continue }
            let places = [
                PausedPlace(scope: .all, name: ""), PausedPlace(scope: .folder, name: folder),
                PausedPlace(scope: .destination, name: transfer.destination),
            ]
            if places.contains(where: { pause($0.scope, $0.name) != nil }) { continue }
            if try await house.store.upload(id)?.pausedAt == nil { house.live.goOn(id) }
        }
    }

    // MARK: What cuts a transfer

    private func isGentle(_ scope: PauseRecord.Scope, _ name: String) -> Bool {
        draining.contains(PausedPlace(scope: scope, name: name))
    }

    /// The inputs without the pauses that cut no running transfer.
    var cuttingWorld: Admission.PolicyInputs {
        var inputs = inputs
        if isGentle(.all, "") { inputs.everything = nil }
        return inputs
    }

    func cutting(_ name: String) -> Admission.DestinationState {
        var remote = remote(name)
        if isGentle(.destination, name) { remote.pause = nil }
        return remote
    }

    func cutting(_ origin: Admission.FolderState) -> Admission.FolderState {
        var origin = origin
        if isGentle(.folder, origin.name) { origin.pause = nil }
        return origin
    }
}
