internal import Core
internal import Linux

extension PartsEngine {
    /// Small files that are one part each and that one request takes whole, one behind the other. What goes any other way is
    /// left to ``upload(_:_:)``, which finds what was begun here by the checkpoint, and the reason by meeting it again.
    func upload(together orders: [UploadOrder], _ notes: any BundleNotes) async throws -> [String: RemoteObject] {
        notes.entered(.opening)
        var verified: [String: RemoteObject] = [:]
        var pieces: [PartsPiece] = []
        var names: Set<FilePath> = []
        do {
            for order in orders where names.insert(order.name).inserted {
                try Task.checkCancellation()
                guard let plan = plan(order) else { continue }
                // What a quota does not leave enough for waits alone, and says so.
                if await notes.paying(for: order.id, { dialect.pledge(for: plan[0].length) }) != nil { continue }
                var checkpoint = plan.checkpoint(order)
                let held: RemoteObject?
                do {
                    held = try await notes.paying(for: order.id) {
                        let held = try await dialect.settle(order, plan, &checkpoint, restarts: 0)
                        if held == nil { try await dialect.begin(order, plan, &checkpoint) }
                        return held
                    }
                } catch let error as UploadError {
                    // It waits for another upload, perhaps for one of these.
                    if case .pending = error.remedy { continue }
                    throw error
                }
                if let held {
                    verified[order.id] = held
                    continue
                }
                checkpoint[PartsRun.begun] = "1"
                // Whoever takes it up alone looks whether it is there before it goes again.
                checkpoint["final_sent"] = "1"
                pieces.append(PartsPiece(order: order, plan: plan, checkpoint: checkpoint))
            }
            let checkpoints = Dictionary(pieces.map { ($0.order.id, $0.checkpoint) }) { first, _ in first }
            let isHeld = pieces.isEmpty ? [] : try await notes.record(checkpoints)
            notes.entered(.uploading)
            for piece in pieces where isHeld.contains(piece.order.id) && !notes.isToPause(piece.order.id) {
                try Task.checkCancellation()
                let id = piece.order.id
                let sending = await notes.paying(for: id) {
                    let sending = await dialect.send(piece.plan[0], piece) { notes.sending(id, $0) }
                    dialect.returnPledge(for: piece.plan[0].length, sent: sending.bytesSent)
                    return sending
                }
                // Its name is another file's: that is its own matter.
                if case .startOver = sending.answer { continue }
                // What went wrong would go wrong for the next one too.
                guard case .taken(_, let finished?, _) = sending.answer else { break }
                CrashPoint.reached("part-answered")
                verified[id] = finished
            }
        } catch is UploadError {
            // Met again, and judged, by the first of these that goes alone.
        } catch is CancellationError where !verified.isEmpty {
            // What is there by now is told all the same: nobody else knows.
        }
        return verified
    }

    /// - Returns: `nil` for a file that does not go like this: what it fails by, if it does, is said when it goes alone.
    private func plan(_ order: UploadOrder) -> PartPlan? {
        guard !dialect.opensByRequest, !dialect.completesByRequest else { return nil }
        do {
            _ = try order.file.checkLook(dialect.failure)
            let plan = try dialect.plan(order)
            return plan.count == 1 ? plan : nil
        } catch { return nil }
    }
}
