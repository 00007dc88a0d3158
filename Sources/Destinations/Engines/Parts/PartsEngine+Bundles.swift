internal import Core
internal import Linux

extension PartsEngine {
    /// Uploads small files that one request each takes whole, one after the other. All other files are left to
    /// ``upload(_:_:)``. It finds uploads that this function started in the checkpoint, and reports the same errors.
    func upload(together orders: [UploadOrder], _ reporter: any BundleReporter) async throws -> [String: RemoteObject] {
        reporter.entered(.opening)
        var verified: [String: RemoteObject] = [:]
        var pieces: [PartsContext] = []
        var names: Set<FilePath> = []
        do {
            for order in orders where names.insert(order.name).inserted {
                try Task.checkCancellation()
                guard let plan = await plan(order) else { continue }
                // A file for which the quota does not suffice waits alone, with the reason.
                let dialect = dialect.charging(upload: order.id)
                if await dialect.reserve(for: plan[0].length) != nil { continue }
                var checkpoint = PartsCheckpoint()
                checkpoint.set(plan, order)
                let held: RemoteObject?
                do {
                    held = try await dialect.chooseName(order, plan, &checkpoint, restarts: 0)
                    if held == nil { try await dialect.begin(order, plan, &checkpoint) }
                } catch let error as UploadError {
                    // This file waits for another upload, perhaps for one of these.
                    if case .pending = error.remedy { continue }
                    throw error
                }
                if let held {
                    verified[order.id] = held
                    continue
                }
                checkpoint.isBegun = true
                // The next attempt for this file alone queries whether it exists before sending it again.
                checkpoint.mayBeWhole = true
                pieces.append(PartsContext(order: order, plan: plan, checkpoint: checkpoint))
            }
            let checkpoints = Dictionary(pieces.map { ($0.order.id, $0.checkpoint.stored) }) { first, _ in first }
            let isHeld = pieces.isEmpty ? [] : try await reporter.record(checkpoints)
            reporter.entered(.uploading)
            for piece in pieces where isHeld.contains(piece.order.id) && !reporter.shouldPause(piece.order.id) {
                try Task.checkCancellation()
                let id = piece.order.id
                let dialect = dialect.charging(upload: id)
                let sending = await dialect.send(piece.plan[0], piece) { reporter.sending(id, $0) }
                dialect.returnReservation(for: piece.plan[0].length, sent: sending.bytesSent)
                // Its name belongs to another file: only this file is affected.
                if case .startOver(_, let cause, let changes) = sending.answer {
                    if cause == .nameTaken {
                        // The attempt for this file alone begins with another name.
                        var next = PartsCheckpoint(
                            piece.checkpoint.stored.keeping(PartsCheckpoint.lasting + dialect.lasting))
                        next.stored.merge(changes)
                        next.increment(\.beginnings)
                        _ = try await reporter.record([id: next.stored])
                    }
                    continue
                }
                // The next file would meet the same error.
                guard case .accepted(_, let finished?, _) = sending.answer else { break }
                CrashPoint.reached("part-answered")
                verified[id] = finished
            }
        } catch is UploadError {
            // The first of these files that is uploaded alone meets and judges the error again.
        } catch is CancellationError where !verified.isEmpty {
            // Files that have arrived are reported nevertheless: no other record of them exists.
        }
        return verified
    }

    /// - Returns: `nil` for a file that is not uploaded in this way. If it cannot be uploaded at all, the attempt for
    ///   it alone reports the error.
    private func plan(_ order: UploadOrder) async -> PartPlan? {
        guard !dialect.opensByRequest, !dialect.completesByRequest else { return nil }
        do {
            _ = try await order.file.checkStatus(dialect.failure)
            let plan = try dialect.plan(order)
            return plan.count == 1 ? plan : nil
        } catch { return nil }
    }
}
