internal import Config
internal import Core
internal import Linux
internal import Store

/// Builds the record of a file and of its uploads, by the settings of the file's folder.
struct NewAssetBuilder: Sendable {
    let configuration: CurrentConfiguration
    let sources: SourceFolders
    let mediaReading: MediaReading

    /// - Parameter routes: Where it goes; the folder's own unless a person named destinations.
    func arrival(
        of file: SettledFile, _ folder: FolderSettings, to routes: [UploadRoute], key: String? = nil,
        context: [String: String] = [:], headers: [String: String] = [:], url: GivenURL? = nil, again: Bool = false,
        facts: MediaFacts = MediaFacts()
    ) -> NewAsset {
        var naming = RemoteNaming(
            folder: file.folder, relative: file.relative, size: file.status.size, modified: file.status.modified)
        naming.facts = facts
        // The output of a command has another name, and perhaps another type.
        var sent = naming
        let export = folder.export(of: file.relative.name)
        if let export { sent = RemoteNaming(file.identity, as: naming.exported(export)) }
        sent.facts = facts
        let orders = routes.destinationsWithChoices.map { destination, choice in
            var order = NewAsset.PlannedUpload(
                destination: destination, name: sent.remoteName(folder.name),
                mediaType: MediaType.of(sent.relative), key: key ?? folder.key.map { naming.text($0) },
                context: folder.context.mapValues { naming.text($0) }.merging(context) { $1 },
                metadata: metadata(of: folder, for: destination).mapValues { naming.text($0) })
            order.choice = choice
            order.headers = headers
            order.url = url
            return order
        }
        return NewAsset(
            file: file, action: naming.settled(folder.afterUpload), priority: folder.priority, orders: orders,
            again: again,
            stagingMode: export != nil ? .export : stagingMode(in: folder))
    }

    /// The templates for metadata: the destination's own take precedence over the folder's with the same names.
    private func metadata(of folder: FolderSettings, for destination: String) -> [String: Template] {
        folder.metadata.merging(configuration.settings(ofDestination: destination)?.templates ?? [:]) { $1 }
    }

    private func stagingMode(in folder: FolderSettings) -> StagingMode {
        if folder.isReceived { return .received }
        return (folder.copy ?? configuration.settings.staging.copy) == .inPlace ? .inPlace : .copy
    }

    // MARK: Destinations

    /// The items of `upload_to` that take a file. This is decided once: the uploads are recorded for them.
    func routes(for file: SettledFile, _ folder: FolderSettings, _ media: MediaFacts) -> [UploadRoute] {
        folder.routes(
            for: FileFacts(
                size: file.status.size, kind: FileKind(mediaType: MediaType.of(file.relative)), duration: media.duration
            ))
    }

    /// Those of files that travel together: where the file goes that the others belong to.
    ///
    /// - Parameters:
    ///   - media: The facts of the recording.
    ///   - earlier: The destinations of the file that they belong to, where that was recorded before.
    func routes(
        forUnit files: [SettledFile], _ folder: FolderSettings, _ media: MediaFacts, earlier: [String]
    ) -> [UploadRoute] {
        if !earlier.isEmpty { return folder.routes(to: earlier.filter(folder.uploadTo.contains)) }
        let first = files.first { folder.group?.isSidecar($0.relative.name) == false } ?? files.first
        return first.map { routes(for: $0, folder, media) } ?? []
    }

    // MARK: Facts of recordings

    /// The facts of a recording for the names and other texts of its uploads. The file is read only where a template of
    /// its folder uses such a fact, and before anything is recorded, since a name does not change afterwards.
    ///
    /// - Parameter copy: The location of the bytes; the source by default.
    func facts(of file: SettledFile, at copy: FilePath? = nil) async -> MediaFacts {
        guard configuration.asksMedia(of: file.folder) else { return MediaFacts() }
        let (reading, source) = (mediaReading, sources.source(file.path))
        // The closure throws nothing.
        return
            (try? await blocking {
                reading.facts(of: copy == nil ? source : nil, orOf: copy, named: file.relative.name, probes: true)
            }) ?? MediaFacts()
    }

    /// The facts of the recording that the other files of its group belong to: a sidecar has none of its own, and has
    /// to get a name beside its video.
    ///
    /// - Parameter leader: A recording that was taken up before, below their folder.
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

extension FolderSettings {
    /// The command that makes the file to upload; `nil` where the file itself is uploaded. A command processes videos;
    /// files that accompany them are sent unchanged.
    func export(of name: FilePath) -> ExportSettings? { group?.isAuxiliary(name) == true ? nil : export }
}

extension [UploadRoute] {
    /// The destinations of all routes, each with its place among those of which one is enough.
    fileprivate var destinationsWithChoices: [(destination: String, choice: NewAsset.Choice?)] {
        enumerated().flatMap { number, route in
            route.destinations.enumerated().map { position, destination in
                let choice = route.after.map { NewAsset.Choice(number: number, wait: $0 * position) }
                return (destination, route.destinations.count > 1 ? choice : nil)
            }
        }
    }
}
