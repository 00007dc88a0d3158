internal import Config
internal import Core
internal import Linux
internal import Media
internal import Staging
internal import Store

/// Reads what recordings say of themselves: our own readers, and `ffprobe` for other formats where it is installed.
///
/// That it cannot be read is no error: there is just nothing to tell.
struct MediaReading: Sendable {
    private let probe: FFProbe?

    init(probe: FFProbe? = FFProbe.installed()) { self.probe = probe }

    /// Waits for the disk on this thread.
    ///
    /// - Parameters:
    ///   - copy: Where the staged copy is, or is to be; the source is read where there is none.
    ///   - source: `nil` for bytes without one.
    ///   - name: The source's name. Only what it calls a recording or a picture is opened.
    ///   - probes: Whether `ffprobe` may be started for what our own readers do not know: a process for each such file.
    func facts(of source: SourceFile?, orOf copy: FilePath?, named name: FilePath, probes: Bool) -> MediaFacts {
        guard Self.isPromising(name) else { return MediaFacts() }
        // What cannot be read has nothing to tell.
        if let copy, let file = try? Descriptor.open(copy, for: .reading) {
            return facts(of: file, shown: copy, named: name, probes: probes)
        }
        guard let source, let file = try? source.open() else { return MediaFacts() }
        return facts(of: file, shown: source.path.shown, named: name, probes: probes)
    }

    private func facts(
        of file: borrowing Descriptor, shown path: FilePath, named name: FilePath, probes: Bool
    ) -> MediaFacts {
        guard let pieces = try? Pieces(of: file.duplicate(named: path), named: path),
            let facts = try? Facts.of(pieces, named: name)
        else { return MediaFacts() }
        return facts.isEmpty && probes ? probe?.facts(of: file) ?? facts : facts
    }

    private static func isPromising(_ name: FilePath) -> Bool {
        let type = MediaType.of(name)
        return ["video/", "audio/", "image/"].contains { type.hasPrefix($0) } || type == "application/mxf"
    }
}

extension Intake {
    /// What the names and other texts of a file's uploads need to know of the recording: read only where a template of
    /// its folder names such a fact, and before anything is written down, since a name does not change afterwards.
    ///
    /// - Parameter copy: Where the bytes are; the source by default.
    func facts(of file: SettledFile, at copy: FilePath? = nil) async -> MediaFacts {
        guard house.asksMedia(of: file.folder) else { return MediaFacts() }
        let (reading, source) = (house.mediaReading, house.sources.source(file.path))
        // It throws nothing.
        return
            (try? await blocking {
                reading.facts(of: copy == nil ? source : nil, orOf: copy, named: file.relative.name, probes: true)
            }) ?? MediaFacts()
    }

    /// What the recording says that the others of its group belong to: a sidecar says nothing of itself, and is to get a name
    /// beside its video.
    ///
    /// - Parameter leader: One that was taken before, below their folder.
    func facts(ofUnit files: [SettledFile], with leader: FilePath?) async -> MediaFacts {
        var recordings = files
        if let leader, var video = files.first {
            video.relative = leader
            recordings.append(video)
        }
        for file in recordings {
            let found = await facts(of: file)
            if !found.isEmpty { return found }
        }
        return MediaFacts()
    }
}

extension Stager {
    /// What staged copies say of themselves, by their assets. Those that are uploaded from where they stand are read there.
    func facts(of assets: [AssetRecord]) async -> [Int64: MediaFacts] {
        let (reading, staging, house) = (house.mediaReading, house.staging, house)
        // Where no template asks, only a person does (`show`): a burst of files must not wait for a process each.
        let probed = Set(assets.filter { house.asksMedia(of: $0.folder) }.map(\.id))
        let found = try? await blocking { () -> [Int64: MediaFacts] in
            var found: [Int64: MediaFacts] = [:]
            for asset in assets {
                found[asset.id] = reading.facts(
                    of: house.source(of: asset), orOf: staging.path(asset.stagedName),
                    named: asset.identity.relative.name, probes: probed.contains(asset.id))
            }
            return found
        }
        // It throws nothing.
        return found ?? [:]
    }
}

extension Agent {
    /// What is known of an asset's recording; read now where nobody has asked `ffprobe` yet and the bytes are still there.
    func mediaFacts(of asset: AssetRecord) async throws -> MediaFacts {
        let known = try await house.store.mediaFacts(of: asset.id)
        guard known.isEmpty else { return known }
        let (reading, copy, source) =
            (house.mediaReading, house.staging.path(asset.stagedName), house.source(of: asset))
        // Whoever asks is not to wait for a disk that does not answer: then nothing is known.
        return
            (try? await SlowDisk(patience: .seconds(3)).run { _ in
                reading.facts(of: source, orOf: copy, named: asset.identity.relative.name, probes: true)
            }) ?? known
    }
}

extension House {
    /// What is made of a folder's files names what a recording says of itself.
    fileprivate func asksMedia(of name: String) -> Bool {
        guard let folder = folder(name) else { return false }
        return folder.namesMediaFacts
            || settings.destinations.contains {
                folder.uploadTo.contains($0.name) && $0.templates.values.contains(where: \.namesMediaFacts)
            }
    }
}

extension FolderSettings {
    /// One of its templates can only be filled when the recording was read.
    fileprivate var namesMediaFacts: Bool {
        var templates = [name] + metadata.values + context.values
        if let key { templates.append(key) }
        if case .move(let target) = afterUpload { templates.append(target) }
        return templates.contains(where: \.namesMediaFacts)
    }
}
