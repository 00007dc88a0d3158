internal import Core
internal import Store

// Pauses that let arrive what is on its way.

/// What a pause is about that is of no single upload.
struct PausedPlace: Hashable, Sendable {
    var scope: PauseRecord.Scope
    /// Empty for everything.
    var name: String
}

extension Dispatcher {
    /// The pauses of these places, which are about to be set, cut nothing that is under way.
    func spare(_ places: [PausedPlace]) { gentle.formUnion(places) }

    /// The pauses of these places cut what is under way, or are over.
    func spareNoMore(_ places: [PausedPlace]) { gentle.subtract(places) }

    /// Uploads that run and that `isMeant` says of end behind the parts that are on their way. Where nothing is being sent yet that is
    /// at once.
    func stopAfterPart(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        // What is being claimed now is given back.
        stops += 1
        for transfer in transfers.values {
            let meant = transfer.folders.filter { isMeant($0.key, transfer.destination, $0.value) }
            if meant.isEmpty { continue }
            house.live.pause(afterPart: meant.keys)
            if transfer.folders.keys.allSatisfy({ house.live[$0] == nil }) { transfer.task.cancel() }
        }
    }

    /// What was to end behind its parts, and is held by nobody any more, goes on as if nothing had been said.
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
        gentle.contains(PausedPlace(scope: scope, name: name))
    }

    /// The world without a pause that cuts nothing.
    var cuttingWorld: Admission.World {
        var world = world
        if isGentle(.all, "") { world.everything = nil }
        return world
    }

    func cutting(_ name: String) -> Admission.Remote {
        var remote = remote(name)
        if isGentle(.destination, name) { remote.pause = nil }
        return remote
    }

    func cutting(_ origin: Admission.Origin) -> Admission.Origin {
        var origin = origin
        if isGentle(.folder, origin.name) { origin.pause = nil }
        return origin
    }
}
