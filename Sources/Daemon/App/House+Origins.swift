internal import Core
internal import Linux
internal import Staging
internal import Store

extension House {
    /// What each copy is to tell of itself, should the database be lost.
    func origins(of batch: [AssetRecord]) async -> [Int64: Origin] {
        var origins: [Int64: Origin] = [:]
        // A state that cannot be read now says so when the copy is to be recorded; until then the rest tells enough.
        let all = (try? await store.uploads(ofEach: batch.map(\.id))) ?? [:]
        for asset in batch {
            let uploads = all[asset.id] ?? []
            var origin = Origin(
                asset.identity, root: asset.root, changed: asset.changed,
                uploads: uploads.filter { !$0.state.isTerminal }.map {
                    Origin.Upload(
                        id: $0.id, destination: $0.destination, name: $0.name, key: $0.key, context: $0.context,
                        url: $0.url)
                })
            origin.release = .random()
            origins[asset.id] = origin
        }
        return origins
    }
}

extension ReleaseToken {
    /// One that nobody can guess.
    static func random() -> ReleaseToken { ReleaseToken(random: Chance.bytes(8)) }
}
