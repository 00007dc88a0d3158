internal import Core

extension WholeEngine {
    /// Small files together, where each is new and its name is free. Anything else is left to ``upload(_:_:)``, which
    /// finds what was begun here by the checkpoint, and the reason by meeting it again.
    func upload(together orders: [UploadOrder], _ notes: any BundleNotes) async throws -> [String: RemoteObject] {
        notes.entered(.opening)
        var verified: [String: RemoteObject] = [:]
        for orders in Dictionary(grouping: orders, by: \.name.parent).values {
            if Task.isCancelled { break }
            do {
                guard let first = orders.first,
                    let place = try await dialect.reach(first.name, isMaking: true)
                else { continue }
                for id in try await bring(orders, to: place, notes) {
                    guard let order = orders.first(where: { $0.id == id }) else { continue }
                    verified[id] = RemoteObject(
                        id: nil, url: place.address(of: order.name.name), verifiedBy: "digest", warnings: place.warnings
                    )
                }
            } catch is UploadError {
                // Met again, and judged, by the first of these that goes alone.
                continue
            } catch is CancellationError {
                // What has its name by now is told all the same: nobody else knows.
                break
            }
        }
        return verified
    }

    private func bring(
        _ orders: [UploadOrder], to place: any WholePlace, _ notes: any BundleNotes
    ) async throws -> Set<String> {
        var pieces: [WholePiece] = []
        var names: Set<FilePath> = []
        for order in orders where names.insert(order.name.name).inserted {
            pieces.append(WholePiece(order: order, part: WholeRun.partName(order), name: order.name.name))
        }
        let checkpoints = pieces.map { ($0.order.id, WholeRun.beginning($0.order, $0.part)) }
        // Before there is anything under the temporary names: what nobody remembers is never removed.
        let held = try await notes.record(Dictionary(checkpoints, uniquingKeysWith: { first, _ in first }))
        notes.entered(.uploading)
        return try await place.bring(
            pieces.filter { held.contains($0.order.id) }, isWanted: { !notes.isToPause($0) },
            { id, bytes in
                notes.spent(id, bytes)
                // Each is read back once.
                notes.received(id, bytes)
            })
    }
}
