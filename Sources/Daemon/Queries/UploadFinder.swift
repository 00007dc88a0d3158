internal import API
internal import Core
internal import Linux
internal import Store

/// Finds the uploads that a person names in a request.
struct UploadFinder: Sendable {
    let store: Store

    func rows(_ selection: Selection) async throws -> [UploadRow] {
        guard selection.folder == nil, selection.destination == nil, !selection.all else {
            throw Refusal(.badRequest, "give one of: ids, a folder, a destination, all")
        }
        return try await selection.ids.asyncCompactMap { try await self.find($0).ofKnownState() }
    }

    /// Finds an upload by id, unique prefix of at least 6 characters, key, path, the remote's own name or address, or
    /// the end of a path that only one file has. A path or key of several uploads refers to the newest one, as long as
    /// it is for one destination.
    func find(_ reference: String) async throws -> UploadRow {
        let found = try await candidates(reference)
        if !found.isEmpty || reference.hasPrefix("/") { return try requireOne(found, reference) }
        throw Refusal(
            .notFound,
            "no upload has the id `\(reference)`"
                + (reference.utf8.count < 6 ? ": the start of an id needs at least 6 characters" : ""))
    }

    /// All uploads that ``find(_:)`` may refer to.
    func candidates(_ reference: String) async throws -> [UploadRow] {
        if reference.hasPrefix("/") {
            for path in paths(reference) {
                let found = try await store.read { try $0.uploads.rows(path: path) }
                if !found.isEmpty { return found }
            }
            return []
        }
        if let id = UploadID(reference), let row = try await store.read({ try $0.uploads.row(id.text) }) {
            return [row]
        }
        let letters = reference.uppercased()
        if (6..<26).contains(letters.utf8.count), letters.utf8.allSatisfy({ $0 < 0x80 }) {
            let found = try await store.read { try $0.uploads.rows(idPrefix: letters, limit: 6) }
            if !found.isEmpty { return found }
        }
        let named = try await store.read { try $0.uploads.rows(key: reference) }
        let found = named.isEmpty ? try await store.read { try $0.uploads.rows(remote: reference) } : named
        if let newest = found.first { return found.filter { $0.asset.id == newest.asset.id } }
        return try await rows(endingIn: reference)
    }

    /// The paths that a person's text may refer to: as displayed, else literally, since a name may contain text that
    /// looks like an escape.
    func paths(_ reference: String) -> [FilePath] {
        [FilePath(display: reference), FilePath(reference)].compactMap { $0 }
    }

    /// Uploads of the files whose paths end in the whole names of `reference`: of each file the newest ones.
    private func rows(endingIn reference: String) async throws -> [UploadRow] {
        // As displayed, else literally, like a whole path.
        let shown = FilePath(display: reference)
        let asItStands = FilePath(reference)
        for end in [shown, shown == asItStands ? nil : asItStands].compactMap({ $0 }) {
            let names = end.components
            guard let last = names.last else { continue }
            var newest: [SourcePath: Int64] = [:]
            let found = try await store.read { try $0.uploads.rows(named: last, limit: 1000) }.filter { row in
                let path = row.asset.path
                guard path.shown.components.suffix(names.count) == names[...] else { return false }
                if newest[path] == nil { newest[path] = row.asset.id }
                return newest[path] == row.asset.id
            }
            if !found.isEmpty { return found }
        }
        return []
    }

    private func requireOne(_ found: [UploadRow], _ reference: String) throws -> UploadRow {
        guard let first = found.first else { throw Refusal(.notFound, "no upload of `\(reference)` exists") }
        if found.count == 1 { return first }
        // The names that distinguish them: the file, else the destination.
        let areOneFile = found.allSatisfy { $0.asset.path == first.asset.path }
        let names = found.prefix(5).map {
            "\($0.upload.id) (\(areOneFile ? $0.upload.destination : $0.asset.path.display))"
        }
        throw Refusal(.ambiguous, "`\(reference)` matches several uploads: " + names.joined(separator: ", "))
    }
}

extension Array {
    /// Like `compactMap`, one element after another.
    func asyncCompactMap<R>(_ make: (Element) async throws -> R?) async rethrows -> [R] {
        var out: [R] = []
        for element in self { if let made = try await make(element) { out.append(made) } }
        return out
    }
}

extension UploadRow {
    /// Refuses an upload whose state only a newer program knows, because its permitted commands are unknown.
    fileprivate func ofKnownState() throws(Refusal) -> UploadRow {
        guard let state = upload.unknown.state else { return self }
        throw Refusal(
            .conflict, "\(upload.id) is \(printable(state)), which only a newer version of sluice knows", id: upload.id)
    }
}
