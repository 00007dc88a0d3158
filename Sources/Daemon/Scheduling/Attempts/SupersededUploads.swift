internal import Core
internal import Store
internal import Synchronization

/// Running uploads that a commit of something else has ended, so that the scheduler has to stop them.
final class SupersededUploads: Sendable {
    /// An upload that has to stop.
    struct Stop: Sendable {
        let id: String
        let reason: Reason
    }

    enum Reason: Sendable {
        /// Another attempt has found its staged copy damaged or missing.
        case stagedAgain
        /// A newer version of its source is on record, which is read in place: recording it has ended the upload.
        case newerVersion
        /// Another destination, which is enough, has the file.
        case verifiedElsewhere
        /// Its source is read in place, and it was cancelled.
        case cancelled
    }

    private let mayExist = Atomic(false)

    /// Called with each commit, before the loop wakes: the next cycle looks for the uploads that it has ended.
    func record(_ changes: ChangeSet) {
        if changes.contains(.superseded) { set() }
    }

    /// The next cycle looks, also when the last one could not.
    func set() { mayExist.store(true, ordering: .releasing) }

    /// - Returns: Whether a cycle has to look; once for each time.
    func take() -> Bool { mayExist.exchange(false, ordering: .acquiringAndReleasing) }

    /// Reads which uploads of these transfers have ended.
    static func find(among transfers: [RunningTransfers.Transfer], in store: Store) async throws -> [Stop] {
        var stops: [Stop] = []
        for id in transfers.flatMap(\.folders.keys) {
            guard let row = try await store.read({ try $0.uploads.row(id) }), row.upload.state == .uploading,
                row.asset.state != .staged
            else { continue }
            stops.append(Stop(id: id, reason: .stagedAgain))
        }
        for id in transfers.flatMap({ $0.inPlace.union($0.alternatives) }) {
            guard let row = try await store.read({ try $0.uploads.row(id) }), row.upload.ending == .cancelled else {
                continue
            }
            stops.append(
                Stop(
                    id: id,
                    reason: row.isSuperfluous
                        ? .verifiedElsewhere : row.isSuperseded ? .newerVersion : .cancelled))
        }
        return stops
    }
}
