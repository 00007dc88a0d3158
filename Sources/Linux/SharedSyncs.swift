internal import Synchronization

/// Lets those who want the same folder synced at the same moment share a sync, as a database shares its commits.
package final class SharedSyncs: Sendable {
    /// Which folder, within one run.
    package struct Key: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    private enum Turn {
        /// The sync that began after the call is done.
        case done
        /// Nobody has done it yet: sync, and tell those.
        case lead([CheckedContinuation<Turn, Never>])
        /// The one who led could not: ask again.
        case again
    }
    private let waiting = Mutex<[Key: [CheckedContinuation<Turn, Never>]]>([:])

    package init() {}

    /// Returns when a sync of the folder was made that began after this call.
    ///
    /// - Parameter sync: Makes it. What it throws is thrown here; the others try for themselves.
    package func sync(_ key: Key, _ sync: () async throws -> Void) async throws {
        while true {
            switch await turn(key) {
            case .done: return
            case .again: continue
            case .lead(let others):
                do { try await sync() } catch {
                    pass(key)
                    for other in others { other.resume(returning: .again) }
                    throw error
                }
                pass(key)
                for other in others { other.resume(returning: .done) }
                return
            }
        }
    }

    private func turn(_ key: Key) async -> Turn {
        await withCheckedContinuation { continuation in
            let isFirst = waiting.withLock { waiting in
                if waiting[key] == nil {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFirst { continuation.resume(returning: .lead([])) }
        }
    }

    /// Those who came while a sync was under way get one of their own, all together.
    private func pass(_ key: Key) {
        let next: [CheckedContinuation<Turn, Never>] = waiting.withLock { waiting in
            let next = waiting[key] ?? []
            waiting[key] = next.isEmpty ? nil : []
            return next
        }
        next.first?.resume(returning: .lead(Array(next.dropFirst())))
    }
}
