internal import Config
internal import Core
internal import Linux
internal import Store

// The free space that destinations report, and the uploads that wait for it.

extension Scheduler {
    /// Space at a destination for uploads that have not begun.
    enum SpaceForNewUploads {
        /// The destination is being asked; its answer rings the bell.
        case asked
        /// In bytes; `nil` where there is no limit.
        case known(Int64?)
    }

    /// The space for uploads that have not begun. The destination is asked only while there are such uploads, or when
    /// it has refused one for lack of space. In all other cases the uploads that have begun have their space, and an
    /// upload that waits for the destination's answer sends nothing more.
    func roomForNew(
        at name: String, _ destination: any Destination, from open: Set<String>
    ) async throws -> SpaceForNewUploads {
        let isDue =
            destination.tellsSpace
            && (roomLooks[name] != nil || rooms[name, default: RemoteCapacity()].isDue(at: house.clocks.monotonic()))
        guard isDue else { return .known(rooms[name]?.left) }
        if health[name]?.trouble?.kind != .quota,
            try await house.store.first(waitingFor: name, lacking: 0, from: { open.contains($0) }) == nil
        {
            return .known(0)
        }
        return asksForRoom(name, destination) ? .asked : .known(rooms[name]?.left)
    }

    /// Asks for the free space, if that is due before anything more is sent there.
    ///
    /// - Returns: Whether to wait for the answer, which rings the bell.
    func asksForRoom(_ name: String, _ destination: any Destination) -> Bool {
        guard destination.tellsSpace else { return false }
        if roomLooks[name] != nil { return true }
        // A destination that does not answer is tried with an upload, which reports the trouble.
        if let trouble = health[name]?.trouble, trouble.kind != .quota { return false }
        guard rooms[name, default: RemoteCapacity()].isDue(at: house.clocks.monotonic()), let permit = permit(to: name)
        else {
            return false
        }
        let change = changes[name]
        roomLooks[name] = Task {
            let (space, error) = await TransferPermit.$current.withValue(permit) {
                await self.space(of: destination, name)
            }
            await self.close(permit)
            self.roomLooks[name] = nil
            if !Task.isCancelled, self.changes[name] == change {
                self.told(space, by: name)
                if let error { self.unreachable(name, error) }
            }
            self.house.schedulingSignal.signal()
        }
        return true
    }

    /// - Returns: `nil` when it reports no space, or cannot be asked: then it is not asked for a while, and uploads are
    ///   tried as if there were space.
    private nonisolated func space(
        of destination: any Destination, _ name: String
    ) async -> (RemoteSpace?, UploadError?) {
        do { return (try await destination.space(), nil) } catch {
            house.refused(error.remedy, by: name)
            house.log.debug("its room is not known", ["destination": name, "reason": error.failure.message])
            return (nil, error)
        }
    }

    /// A destination that could not be connected to would refuse an upload too, after the same timeout once more.
    private func unreachable(_ name: String, _ error: UploadError) {
        guard error.failure.code == "unreachable" else { return }
        let retry = house.settings(ofDestination: name)?.policy.retry ?? house.settings.policy.retry
        _ = hold(name, for: error.remedy, error.failure, isUp: false, retry: retry)
    }

    private func close(_ permit: TransferPermit) async {
        guard let account = permit.account else { return }
        do { try await house.ledger.close(account) } catch let error as StoreError { house.stateFailed(error) } catch {
            house.log.debug("what a question cost is not settled", ["reason": "\(error)"])
        }
    }

    private func told(_ space: RemoteSpace?, by name: String) {
        let underWay = transfers.values.filter { $0.destination == name }.flatMap(\.folders.keys).map { id in
            house.live[id].map { $0.size - $0.acked } ?? 0
        }
        let retry = house.settings(ofDestination: name)?.policy.retry ?? house.settings.policy.retry
        rooms[name, default: RemoteCapacity()].told(
            space, underWay: underWay, now: house.clocks.wall(), monotonic: house.clocks.monotonic(),
            lasting: DestinationHealth.patience(retry).first)
    }

    /// Records which upload would be next if there were space at the destination, and reports it once for all of them.
    func noteWhatWaitsForRoom(_ name: String, from folders: Set<String>) async throws {
        guard let room = rooms[name] else { return }
        var next: RemoteCapacity.Waiting?
        if let left = room.left {
            next = try await house.store.first(waitingFor: name, lacking: left, from: { folders.contains($0) }).map {
                RemoteCapacity.Waiting(
                    id: $0.upload.id, name: $0.asset.path.name.display, missing: $0.upload.missing,
                    since: house.clocks.wall())
            }
        }
        rooms[name]?.waits(next)
        if room.waiting == nil, let next, let hold = roomHold(of: name) {
            house.log.notice(
                "waits for room at its destination",
                [
                    "id": next.id, "destination": name, "hold": hold.kind.rawValue, "reason": hold.text,
                    "until": hold.until?.description,
                ])
        } else if room.waiting != nil, next == nil {
            house.log.notice("nothing waits for room any more", ["destination": name])
        }
    }

    /// The hold on the next upload there; smaller uploads are sent.
    func roomHold(of destination: String) -> Hold? {
        guard let room = rooms[destination], let next = room.waiting else { return nil }
        return room.hold(at: destination, missing: next.missing, name: next.name)
    }

    /// The hold on an upload that lacks `missing` bytes there.
    func roomHold(of destination: String, missing: Int64, name: String) -> Hold? {
        rooms[destination]?.hold(at: destination, missing: missing, name: name)
    }

    /// A file was removed there.
    func madeRoom(at destination: String) {
        guard rooms[destination] != nil || health[destination]?.trouble?.kind == .quota else { return }
        rooms[destination]?.changed()
        house.schedulingSignal.signal()
    }
}
