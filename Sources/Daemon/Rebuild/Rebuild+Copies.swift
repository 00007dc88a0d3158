internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store

// Copies in the staging folder: each may be all that is left of a file.

extension Rebuild {
    func importCopy(_ copy: Int64, _ found: inout Found) async throws {
        let path = context.staging.path(FilePath("\(copy)"))
        let (status, sha256, origin) = try await blocking {
            (try FileStatus(at: path), try contentDigest(of: path), try CopyOrigin.read(path))
        }
        guard let origin, origin.staged ?? origin.size == status.size, origin.sha256 == hexadecimal(sha256),
            let folder = context.configuration.folder(origin.folder), let identity = origin.identity,
            let paths = origin.paths,
            // For bytes that were handed over, only the copy itself names the destinations.
            !folder.isReceived || origin.uploads.contains(where: { context.destinations[$0.destination] != nil })
        else {
            if let origin, origin.sha256 != hexadecimal(sha256) {
                found.troubles.append("\(path.display) differs from the bytes that were staged: its content is damaged")
            }
            found.loose[status.size, default: []].append((copy, sha256))
            return
        }
        let root = folder.watch.path
        let source = sources.source(SourcePath(root: root, relative: paths.relative))
        if let token = origin.release, let place = try await restoreName(token.name(of: copy), source) {
            found.returnedSources.append(place.display)
        }
        var file = SettledFile(
            folder: origin.folder, root: root, relative: paths.relative,
            status: FileStatus(
                device: 0, inode: origin.inode ?? 0, size: origin.size, modified: origin.modified,
                changed: origin.changed, born: origin.born, mode: 0o100644),
            identity: identity, settledBy: folder.isReceived ? .added : .quiet)
        if let token = origin.release, let place = try await returnMoved(file, copy, token, origin, folder) {
            found.returnedSources.append(place.display)
        }
        let content = origin.staged == nil ? sha256 : origin.source.flatMap { bytes(hexadecimal: $0) }
        if let current = try await version(at: source, of: identity, changed: origin.changed, content) {
            file.status = current
            found.covered[Found.Place(folder: file.folder, relative: file.relative)] = current
        }
        found.placed += 1
        try await restore([try await restored(file, copy, sha256, origin, folder)], &found)
        CrashPoint.reached("rebuild-copy")
    }

    /// The present source, if it is the file that was staged.
    private func version(
        at source: SourceFile, of identity: FileIdentity, changed: Int64, _ sha256: [UInt8]?
    ) async throws -> FileStatus? {
        try await blocking { () throws -> FileStatus? in
            guard let status = try source.statusIfPresent(), status.isRegular, status.size == identity.size,
                status.modified == identity.modified, identity.inode == nil || identity.inode == status.inode
            else { return nil }
            // A rename or a chmod changes the ctime; then only the bytes can decide.
            if status.changed != changed, try contentDigest(of: source) != sha256 { return nil }
            return status
        }
    }

    /// Gives a source that a release had caught its name back, or a free name beside it.
    private func restoreName(_ caught: FilePath, _ source: SourceFile) async throws -> FilePath? {
        let isTrial = options.isTrial
        return try await blocking { () throws -> FilePath? in
            guard let folder = try source.openParentIfPresent(), try folder.has(caught) else { return nil }
            if isTrial { return source.path.shown }
            let name = try folder.renameToFreeName(caught, as: source.name, in: folder)
            try folder.sync()
            return folder.path.appending(name)
        }
    }

    /// The same for a source that a move had brought into its target's directory and not yet named there.
    private func returnMoved(
        _ file: SettledFile, _ copy: Int64, _ token: ReleaseToken, _ origin: CopyOrigin, _ folder: FolderSettings
    ) async throws -> FilePath? {
        let sha256 = (origin.staged == nil ? origin.sha256 : origin.source).flatMap { bytes(hexadecimal: $0) }
        var naming = RemoteNaming(
            folder: origin.folder, relative: file.relative, size: origin.size, modified: origin.modified,
            sha256: sha256,
            id: "\(copy)")
        naming.facts = await assets.facts(of: file, at: context.staging.path(FilePath("\(copy)")))
        guard case .move(let template) = naming.settled(folder.afterUpload) else { return nil }
        let (target, isTrial) = (naming.target(template), options.isTrial)
        let source = sources.source(SourcePath(root: folder.watch.path, relative: file.relative))
        return try await blocking {
            try target.returnSource(copy, token, to: source, isTrial: isTrial)
        }
    }

    private func restored(
        _ file: SettledFile, _ copy: Int64, _ sha256: [UInt8], _ origin: CopyOrigin, _ folder: FolderSettings
    ) async throws -> RestoredFile {
        let told = origin.uploads.filter { context.destinations[$0.destination] != nil }
        let facts = await assets.facts(of: file, at: context.staging.path(FilePath("\(copy)")))
        var arrival = assets.arrival(
            of: file, folder,
            to: told.isEmpty ? assets.routes(for: file, folder, facts) : folder.routes(to: told.map(\.destination)),
            facts: facts)
        for index in arrival.orders.indices {
            guard let upload = told.first(where: { $0.destination == arrival.orders[index].destination }) else {
                continue
            }
            // The recorded name counts, even if the configuration names files in another way by now.
            if let name = bytes(hexadecimal: upload.name), !name.isEmpty, !name.contains(0) {
                arrival.orders[index].name = FilePath(bytes: name)
            }
            arrival.orders[index].key = upload.key
            arrival.orders[index].url = upload.url.map(GivenURL.init(stored:))
            arrival.orders[index].context.merge(upload.context ?? [:]) { $1 }
        }
        arrival.stagingMode = origin.staged != nil ? .export : folder.isReceived ? .received : .copy
        let size = origin.staged ?? file.status.size
        let staged = StagedFile(path: context.staging.path(FilePath("\(copy)")), size: size, sha256: sha256)
        var uploads: [RestoredFile.Upload] = []
        for order in arrival.orders {
            uploads.append(
                await inventory.resolveKnowledge(
                    of: order, id: told.first { $0.destination == order.destination }?.id, staged,
                    size: file.status.size, modified: file.status.modified,
                    try await context.store.read {
                        try $0.evidence.find(file.folder, file.relative, order.destination)
                    },
                    mayBeOld: false))
        }
        let sourceSHA256 = origin.source.flatMap { bytes(hexadecimal: $0) }
        // A source without a digest is not removed.
        if origin.staged != nil && sourceSHA256 == nil || uploads.contains(where: { $0.knowledge.isAssumed }) {
            arrival.action = .leave
        }
        var restored = RestoredFile(arrival: arrival, copy: copy, sha256: sha256, uploads: uploads)
        let (reading, path) = (mediaReading, staged.place.shown)
        restored.media = try await blocking {
            reading.facts(of: nil, orOf: path, named: file.relative.name, probes: false)
        }
        restored.stagedSize = origin.staged
        restored.sourceSHA256 = origin.staged == nil ? nil : sourceSHA256
        return restored
    }
}
