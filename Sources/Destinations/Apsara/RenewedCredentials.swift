internal import Core
internal import Synchronization

/// Rights that were renewed during uploads in this process and are not recorded with them.
final class RenewedCredentials: Sendable {
    enum Newest: Sendable {
        /// The recorded right counts.
        case written
        case renewed(ApsaraGrant, until: WallTime)
        /// The recorded right must not be used any more, even if time is left.
        case invalidated

        /// Returns the right that counts, and the time left of it.
        func valid(_ checkpoint: ApsaraCheckpoint, now: WallTime) -> (grant: ApsaraGrant, left: Duration)? {
            switch self {
            case .written: return ApsaraGrant.read(checkpoint, now: now)
            case .invalidated: return nil
            case .renewed(let grant, let until):
                let left = Duration.milliseconds(until.milliseconds - now.milliseconds)
                return left > .zero && left <= ApsaraKeys.longestLife ? (grant, left) : nil
            }
        }
    }

    /// Newest rights by id of upload. The oldest are dropped, so that an upload that never continues is forgotten.
    private let newest = Mutex<[(id: String, what: Newest)]>([])
    private static let maxEntries = 256
    /// References by id of the medium: a medium belongs to one file.
    private let media = Mutex<[String: String]>([:])
    private static let maxRememberedMedia = 4096

    /// - Returns: `false` when another file was given this medium.
    func claim(_ medium: ApsaraMedium, under reference: String) -> Bool {
        guard let id = medium.id else { return true }
        return media.withLock { media in
            if let other = media[id], other != reference { return false }
            if media.count >= Self.maxRememberedMedia { media = [:] }
            media[id] = reference
            return true
        }
    }

    /// Uploads in progress, by reference: two uploads of the same file would send it twice.
    private let going = Mutex<[String: String]>([:])

    /// - Returns: `false` when another upload goes to the same medium.
    func reserve(_ reference: String, for id: String) -> Bool {
        going.withLock { going in
            if let other = going[reference], other != id { return false }
            going[reference] = id
            return true
        }
    }

    func release(of id: String) { going.withLock { $0 = $0.filter { $0.value != id } } }

    func keep(_ grant: ApsaraGrant, until: WallTime, for id: String) { put(.renewed(grant, until: until), id) }
    func invalidate(_ id: String) { put(.invalidated, id) }
    func forget(_ id: String) { newest.withLock { $0.removeAll { $0.id == id } } }

    /// Called once for each attempt: a right that is spoiled later is for the next attempt.
    func consume(_ id: String) -> Newest {
        newest.withLock { all in
            guard let index = all.firstIndex(where: { $0.id == id }) else { return .written }
            switch all[index].what {
            case .invalidated: return all.remove(at: index).what
            case .written, .renewed: return all[index].what
            }
        }
    }

    private func put(_ what: Newest, _ id: String) {
        newest.withLock { all in
            all.removeAll { $0.id == id }
            all.append((id, what))
            if all.count > Self.maxEntries { all.removeFirst() }
        }
    }
}
