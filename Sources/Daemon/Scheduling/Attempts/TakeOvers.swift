internal import Core
internal import Linux
internal import Store

/// Lets uploads go that waited for other destinations of `first_of`, which did not have the file in time.
struct TakeOvers {
    let context: Context

    /// Uploads in one transaction.
    private static let atOnce = 200

    /// The time until the next of them may go; empty when none waits.
    func nextWait() async throws -> [Duration] {
        try await context.store.read { [try $0.alternatives.nextWait()].compactMap { $0 } }
    }

    func run() async throws {
        while try await nextWait() == [.zero] {
            let begun = try await context.store.write { try $0.alternatives.endWaits(most: Self.atOnce) }
            for row in begun {
                context.log.notice(
                    "upload goes to the next destination of `first_of`: the file was not verified before in time",
                    ["id": row.upload.id, "destination": row.upload.destination, "path": row.asset.path.display])
            }
            if begun.isEmpty { return }
        }
    }
}
