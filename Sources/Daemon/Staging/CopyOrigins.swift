internal import Core
internal import Linux
internal import Staging
internal import Store

/// Reads the facts that each copy carries with it, in case the database is lost.
struct CopyOrigins {
    let store: Store

    /// By the numbers of the assets.
    func of(_ batch: [AssetRecord]) async -> [Int64: CopyOrigin] {
        var origins: [Int64: CopyOrigin] = [:]
        // If the state cannot be read now, recording the copy will fail and report it; until then the other facts are
        // enough.
        let all = (try? await store.read { try $0.uploads.ofEach(batch.map(\.id)) }) ?? [:]
        for asset in batch {
            let uploads = all[asset.id] ?? []
            var origin = CopyOrigin(
                asset.identity, root: asset.root, changed: asset.changed,
                uploads: uploads.filter { !$0.state.isTerminal }.map {
                    CopyOrigin.Upload(
                        id: $0.id, destination: $0.destination, name: $0.name, key: $0.key, context: $0.context,
                        url: $0.url?.stored)
                })
            origin.release = .random()
            origins[asset.id] = origin
        }
        return origins
    }
}

extension ReleaseToken {
    /// A token that cannot be guessed.
    static func random() -> ReleaseToken { ReleaseToken(random: Random.bytes(8)) }
}
