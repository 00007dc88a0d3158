internal import Synchronization

/// Videos that are known to belong to uploads of this process, so that none is taken for another upload's. Shared by
/// all destinations at the same address: two of them may be the same account.
final class VimeoVideos: Sendable {
    private struct State {
        var known: Set<String> = []
        /// Creations without an answer yet, by size and name.
        var creating: [String: Int] = [:]
    }

    private struct Weak: Sendable { weak var videos: VimeoVideos? }

    /// Kept for as long as there is a destination at the address.
    private static let all = Mutex<[String: Weak]>([:])
    private let state = Mutex(State())

    /// - Parameter base: The address of the API.
    static func at(_ base: String) -> VimeoVideos {
        all.withLock { all in
            all = all.filter { $0.value.videos != nil }
            let videos = all[base]?.videos ?? VimeoVideos()
            all[base] = Weak(videos: videos)
            return videos
        }
    }

    func note(_ video: String) { state.withLock { _ = $0.known.insert(video) } }
    func contains(_ video: String) -> Bool { state.withLock { $0.known.contains(video) } }

    /// - Returns: `false` when it was known before.
    func claim(_ video: String) -> Bool { state.withLock { $0.known.insert(video).inserted } }

    /// Whether a creation is in progress that would make a video with this size and name.
    func isCreating(_ size: Int64, _ name: String?) -> Bool {
        state.withLock { $0.creating[Self.key(size, name)] ?? 0 > 0 }
    }

    /// Runs the creation of a video.
    func creating<Made>(_ size: Int64, _ name: String?, _ work: () async throws -> Made) async rethrows -> Made {
        let key = Self.key(size, name)
        state.withLock { $0.creating[key, default: 0] += 1 }
        defer {
            state.withLock { state in
                let left = (state.creating[key] ?? 1) - 1
                state.creating[key] = left > 0 ? left : nil
            }
        }
        return try await work()
    }

    private static func key(_ size: Int64, _ name: String?) -> String { "\(size) \(name ?? "")" }
}
