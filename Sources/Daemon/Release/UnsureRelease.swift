internal import Config
internal import Core
internal import Linux
internal import Media
internal import Staging
internal import Store

// Verified sources for which it is unknown whether a program has them open for writing.

/// The next step for such a source.
enum UnsureReleasePlan: Hashable, Sendable {
    /// The remaining time that it has to stay unchanged.
    case wait(Duration)
    case keep
    /// The source is released.
    ///
    /// - Parameter comparing: Only if its bytes are still the staged ones.
    case go(comparing: Bool)

    /// The mode of the release; `nil` where there is none now.
    var inDoubt: SourceRelease.InDoubt? {
        if case .go(let isComparing) = self { isComparing ? .compare : .accept } else { nil }
    }
}

extension UnsureReleaseRule {
    /// The default where the folder has no setting.
    static func standard(_ doubt: WriterSearch.Doubt) -> Self {
        switch doubt {
        case .elsewhere: .after(.seconds(600))
        case .notReported: .keep
        }
    }
}

extension Releaser {
    /// Evaluates waiting and kept sources again after `release_unsure` of these folders has changed.
    func reevaluate(_ folders: Set<String>) async throws {
        if folders.isEmpty { return }
        for folder in folders { _ = unsureReleases.clear(folder) }
        deferrals.end(of: folders)
        try await reviewKept(of: folders)
    }

    /// Reviews the sources that were kept because it was unknown whether they are open for writing. Where that is known
    /// by now, or the folder's setting has changed, they are evaluated again; for the other folders the hold is
    /// reported again.
    ///
    /// - Parameter folders: `nil` for all.
    func reviewKept(of folders: Set<String>? = nil) async throws {
        for doubt in [WriterSearch.Doubt.elsewhere, .notReported] {
            let kept = try await context.store.read { try $0.releases.kept(because: UnsureReleaseTexts.note(doubt)) }
            for (name, assets) in Dictionary(grouping: kept, by: \.folder) where folders?.contains(name) ?? true {
                guard let folder = context.configuration.folder(name), folder.removesSources else { continue }
                let (writers, locator) = (writers, locator)
                // The first unchanged source answers for the others. A source that a person has removed or replaced
                // proves nothing.
                let answer = try await blocking { () -> WriterSearch.Answer? in
                    for asset in assets {
                        let source = locator.source(of: asset)
                        guard let folder = try? source.openParent(), let status = try? folder.status(at: source.name),
                            status.isRegular, status.size == asset.size, status.modified == asset.identity.modified
                        else { continue }
                        if let answer = try? writers.findWriter(source.name, in: folder).answer, answer != .present {
                            return answer
                        }
                    }
                    return nil
                }
                switch answer {
                case nil, .present: continue
                case .unknown(let doubt) where (folder.releaseUnsure ?? .standard(doubt)) == .keep: logKept(name, doubt)
                case .unknown, .absent:
                    try await context.store.requeueKept(assets.map(\.id))
                    context.log.notice(
                        "checking kept sources again", ["folder": name, "files": "\(assets.count)"])
                }
            }
        }
    }

    func logKept(_ folder: String, _ doubt: WriterSearch.Doubt) {
        let text = UnsureReleaseTexts.keptSourcesText(folder, doubt)
        if unsureReleases.set(folder, Hold(.disk, since: context.clocks.wall(), text: text)) {
            context.log.warning("sources of a folder are kept", ["folder": folder, "reason": text])
        }
    }

    func unsurePlan(for asset: AssetRecord, _ doubt: WriterSearch.Doubt) async throws -> UnsureReleasePlan {
        let folder = context.configuration.folder(asset.folder)
        let marker = folder?.watch.marker
        let source = locator.source(of: asset)
        if try await blocking({ try Self.isProvenFinished(asset, source, marker) }) { return .go(comparing: true) }
        switch folder?.releaseUnsure ?? .standard(doubt) {
        case .keep: return .keep
        case .delete: return .go(comparing: false)
        case .after(let time):
            let left = time - .milliseconds(try await millisecondsSinceVerified(asset))
            return left > .zero ? .wait(left) : .go(comparing: true)
        }
    }

    /// How long it has been verified, in ms: measured in the time that daemons ran, or in the machine's uptime since
    /// the first question, whichever is longer. Setting the clock shortens neither, and a restart resets nothing.
    private func millisecondsSinceVerified(_ asset: AssetRecord) async throws -> Int64 {
        let ran = context.store.currentRunTime
        let verified = try await context.store.read { try $0.uploads.of(asset.id) }.compactMap(\.ranAt).max()
        let waited =
            if let boot = Machine.boot {
                try await context.store.waitedTime(asset.id, since: verified ?? 0, boot: boot)
            } else { Int64(0) }
        // After a crash the daemon's time may be behind for a while. Where nothing was recorded, it proves nothing.
        return max(waited, verified.map { ran - $0 } ?? 0)
    }

    /// Whether the file itself shows that it is finished: by its marker, or by a container that has an end and is
    /// complete. Waits for the disk.
    private static func isProvenFinished(
        _ asset: AssetRecord, _ source: SourceFile, _ marker: MarkerName?
    ) throws -> Bool {
        switch asset.settledBy {
        case .marker: return true
        case .container:
            if let marker {
                let beside = source.sibling(marker.marker(of: source.name))
                if try beside.statusIfPresent()?.isRegular == true { return true }
            }
            return try Container.isClosed(HeaderReader(of: source.open(), named: asset.path.shown), named: source.name)
        case .lease, .proc, .closed, .quiet, .broken, .added: return false
        }
    }
}

/// The texts for people about such sources.
enum UnsureReleaseTexts {
    static func reason(_ doubt: WriterSearch.Doubt) -> String {
        switch doubt {
        case .elsewhere: "its file system does not report whether another machine has it open for writing"
        case .notReported: "the kernel does not report whether it is open for writing"
        }
    }

    /// The note of a source that stays. Stored, and found again by that text.
    static func note(_ doubt: WriterSearch.Doubt) -> String {
        "\(reason(doubt)), so it is kept (release_unsure: keep)"
    }

    /// The same for any file of a folder.
    static func unknown(_ doubt: WriterSearch.Doubt) -> String {
        switch doubt {
        case .elsewhere: "its file system does not report whether another machine has a file open for writing"
        case .notReported: "the kernel does not report whether a file of another user is still open for writing"
        }
    }

    /// The text for a folder whose verified sources stay, with the change that would end that.
    static func keptSourcesText(_ folder: String, _ doubt: WriterSearch.Doubt) -> String {
        switch doubt {
        case .elsewhere:
            "folder \(folder): verified sources are kept because \(unknown(doubt)): set release_unsure of the folder to `after 10m`, or "
                + "to `delete`"
        case .notReported:
            "folder \(folder): verified sources are kept because \(unknown(doubt)): \(remedy)"
        }
    }

    static let remedy =
        "give the service CAP_LEASE (AmbientCapabilities=CAP_LEASE and CapabilityBoundingSet=CAP_LEASE in its unit), or set "
        + "release_unsure of the folder"
}
