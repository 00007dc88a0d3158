internal import Config
internal import Core
internal import Linux
internal import Store

/// Daily maintenance: removes tombstones whose sources are long gone and thumbnails that were not shown for long, and
/// compacts the ledger.
struct Maintenance: Sendable {
    let context: Context
    let sources: SourceFolders
    let fileSystems: FileSystems
    let thumbnails: ThumbnailCache
    /// Wakes it: the configuration has changed.
    let signal: AsyncSignal
    /// One wake-up a day, however little the daemon has to do: pictures must not stay because nothing arrives any more.
    var interval: Duration = .seconds(86_400)

    func run() async throws {
        var next = context.clocks.monotonic()
        while !Task.isCancelled {
            let now = context.clocks.monotonic()
            let isDue = now >= next
            if isDue {
                next = now.advanced(by: interval)
                await prune()
            }
            await pruneThumbnails(isDue: isDue)
            await signal.wait(atMost: next.since(context.clocks.monotonic()))
        }
    }

    private func prune() async {
        do { try await pruneTombstones() } catch {
            context.log.warning("cannot prune tombstones", ["reason": "\(error)"])
        }
        do { try await context.store.pruneLedger() } catch {
            context.log.warning("cannot prune the quota ledger", ["reason": "\(error)"])
        }
    }

    /// Thumbnails show what people have recorded: none is left where they are switched off.
    private func pruneThumbnails(isDue: Bool) async {
        let isOn = context.settings.control.thumbnails
        if isOn, !isDue { return }
        let unused = context.clocks.wall().advanced(by: .zero - ThumbnailCache.kept)
        do {
            try await blocking { [thumbnails] in
                if isOn { try thumbnails.removeUnused(since: unused) } else { try thumbnails.removeAll() }
            }
        } catch {
            context.log.warning("cannot remove thumbnails", ["reason": "\(error)"])
        }
    }

    /// A tombstone lives as long as its source exists. It is removed only if its folder is present, on the file system
    /// that it was seen on, and its file is not. The clock alone decides nothing.
    private func pruneTombstones() async throws {
        while true {
            let old = try await context.store.read { try $0.tombstones.old(limit: 500) }
            let rules = Dictionary(
                context.settings.presentFolders.map { ($0.watch.name, $0.watch) },
                uniquingKeysWith: { first, _ in first })
            let (fileSystems, sources) = (fileSystems, sources)
            let (renewed, gone) = try await blocking {
                var (renewed, gone): ([FileIdentity], [FileIdentity]) = ([], [])
                // Another medium may have got the device number since: the absence of the file there proves nothing.
                fileSystems.forget()
                let away = Set(
                    rules.values.filter { MountCheck(sources[$0.path], [$0.requirement]).missing() != nil }.map(\.name))
                for identity in old {
                    // The folder may come back, into the configuration or under its path.
                    guard let root = rules[identity.folder]?.path, !away.contains(identity.folder) else {
                        renewed.append(identity)
                        continue
                    }
                    let top = try sources[root].open()
                    let device = try top.status(at: "").device
                    let isHome =
                        identity.fileSystem == nil
                        || fileSystems.identity(of: top, device: device)?.name == identity.fileSystem
                    let stands = try top.statusIfPresent(at: identity.relative) != nil
                    if isHome && !stands { gone.append(identity) } else { renewed.append(identity) }
                }
                return (renewed, gone)
            }
            if old.isEmpty { return }
            try await context.store.write { try $0.tombstones.prune(renewed: renewed, gone: gone) }
            if !gone.isEmpty {
                context.log.debug("removed the records of sources deleted long ago", ["files": "\(gone.count)"])
            }
        }
    }
}
