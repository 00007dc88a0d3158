internal import Config
internal import Core
internal import Linux
internal import Media
internal import Staging
internal import Store

/// Reads the metadata in recordings: with our own readers, and with `ffprobe` for other formats where it is installed.
///
/// An unreadable file is no error: it has no metadata.
struct MediaReading: Sendable {
    private let probe: FFProbe?

    init(probe: FFProbe? = FFProbe.installed()) { self.probe = probe }

    /// Waits for the disk on this thread.
    ///
    /// - Parameters:
    ///   - copy: The path of the staged copy, which may not exist yet; the source is read where there is none.
    ///   - source: `nil` for bytes without a source.
    ///   - name: The source's name. The file is opened only if its name is that of a recording or a picture.
    ///   - probes: Whether `ffprobe` may be started for formats that our own readers do not know: a process for each
    ///     such file.
    func facts(of source: SourceFile?, orOf copy: FilePath?, named name: FilePath, probes: Bool) -> MediaFacts {
        guard Self.mayBeRecording(name) else { return MediaFacts() }
        // An unreadable file has no metadata.
        if let copy, let file = try? Descriptor.open(copy, for: .reading) {
            return facts(of: file, shown: copy, named: name, probes: probes)
        }
        guard let source, let file = try? source.open() else { return MediaFacts() }
        return facts(of: file, shown: source.path.shown, named: name, probes: probes)
    }

    private func facts(
        of file: borrowing Descriptor, shown path: FilePath, named name: FilePath, probes: Bool
    ) -> MediaFacts {
        guard let reader = try? HeaderReader(of: file.duplicate(named: path), named: path),
            let facts = try? MediaFactsReader.of(reader, named: name)
        else { return MediaFacts() }
        return facts.isEmpty && probes ? probe?.facts(of: file) ?? facts : facts
    }

    private static func mayBeRecording(_ name: FilePath) -> Bool {
        let type = MediaType.of(name)
        return ["video/", "audio/", "image/"].contains { type.hasPrefix($0) } || type == "application/mxf"
    }
}

extension Stager {
    /// The facts in staged copies, by their assets. Assets that are uploaded in place are read there.
    func facts(of assets: [AssetRecord]) async -> [Int64: MediaFacts] {
        let (reading, staging, locator) = (mediaReading, context.staging, locator)
        // Without a template or a condition that needs the facts, only a person asks for them (`show`): a burst of files must not wait
        // for a process each.
        let configuration = context.configuration
        let asksLength = configuration.value.questions.list.contains {
            if case .longerThan = $0 { true } else { false }
        }
        let probed = Set(assets.filter { asksLength || configuration.asksMedia(of: $0.folder) }.map(\.id))
        let found = try? await blocking { () -> [Int64: MediaFacts] in
            var found: [Int64: MediaFacts] = [:]
            for asset in assets {
                found[asset.id] = reading.facts(
                    of: locator.source(of: asset), orOf: staging.path(asset.stagedName),
                    named: asset.identity.relative.name, probes: probed.contains(asset.id))
            }
            return found
        }
        // The closure throws nothing.
        return found ?? [:]
    }
}

extension CurrentConfiguration {
    /// Whether a setting of the folder uses facts of a recording.
    func asksMedia(of name: String) -> Bool {
        guard let folder = folder(name) else { return false }
        return folder.namesMediaFacts || folder.routesByLength
            || settings.destinations.contains {
                folder.uploadTo.contains($0.name) && $0.templates.values.contains(where: \.namesMediaFacts)
            }
    }
}

extension FolderSettings {
    /// Whether one of its templates needs facts of a recording.
    fileprivate var namesMediaFacts: Bool {
        var templates = [name] + metadata.values + context.values
        if let key { templates.append(key) }
        if case .move(let target) = afterUpload { templates.append(target) }
        return templates.contains(where: \.namesMediaFacts)
    }
}
