internal import Core

extension WholeEngine {
    /// Uploads small files together, where each is new and its name is free. All other files are left to
    /// ``upload(_:_:)``. It finds uploads that this function started in the checkpoint, and reports the same errors.
    func upload(together orders: [UploadOrder], _ reporter: any BundleReporter) async throws -> [String: RemoteObject] {
        reporter.entered(.opening)
        var verified: [String: RemoteObject] = [:]
        for orders in Dictionary(grouping: orders, by: \.name.parent).values {
            if Task.isCancelled { break }
            do {
                guard let first = orders.first,
                    let place = try await dialect.openFolder(first.name, isMaking: true)
                else { continue }
                for id in try await sendBundle(orders, to: place, reporter) {
                    guard let order = orders.first(where: { $0.id == id }) else { continue }
                    verified[id] = RemoteObject(
                        id: nil, url: place.address(of: order.name.name), verifiedBy: "digest", warnings: place.warnings
                    )
                }
            } catch is UploadError {
                // The first of these files that is uploaded alone meets and judges the error again.
                continue
            } catch is CancellationError {
                // Files that have their name by now are reported nevertheless: no other record of them exists.
                break
            }
        }
        return verified
    }

    private func sendBundle(
        _ orders: [UploadOrder], to place: any RemoteDirectory, _ reporter: any BundleReporter
    ) async throws -> Set<String> {
        var pieces: [BundledFile] = []
        var names: Set<FilePath> = []
        for order in orders where names.insert(order.name.name).inserted {
            pieces.append(BundledFile(order: order, part: WholeUpload.partName(order), name: order.name.name))
        }
        let checkpoints = pieces.map { ($0.order.id, WholeUpload.beginning($0.order, $0.part).stored) }
        // Recorded before anything exists under the temporary names: without a record they would never be removed.
        let held = try await reporter.record(Dictionary(checkpoints, uniquingKeysWith: { first, _ in first }))
        reporter.entered(.uploading)
        return try await place.sendBundle(
            pieces.filter { held.contains($0.order.id) }, isWanted: { !reporter.shouldPause($0) },
            { id, bytes in
                reporter.spent(id, bytes)
                // Each file is read back once.
                reporter.received(id, bytes)
            })
    }
}
