internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

// Files that a person hands in.

extension Agent {
    package func add(_ request: AddRequest) async throws -> [UploadView] {
        try requireReady()
        // No hexadecimal digit is a slash.
        let isText = request.path.hasPrefix("/")
        guard let raw = isText ? Array(request.path.utf8) : bytes(hexadecimal: request.path) else {
            throw Refusal(.badRequest, "`path` takes an absolute path, or its bytes in hexadecimal")
        }
        let path = FilePath(bytes: raw)
        guard path.isAbsolute, path == path.normalised else {
            throw Refusal(.badRequest, "`path` takes an absolute path without `.` and `..`")
        }
        let file = try await settledFile(at: path)
        guard let folder = house.folder(file.folder) else {
            throw Refusal(.badRequest, "\(path.display) is in no configured folder")
        }
        for name in request.to where house.destinations[name] == nil {
            let known = house.settings.destinations.map(\.name)
            throw Refusal(
                .badRequest,
                "no destination is called `\(name)`: "
                    + (closest(to: name, among: known).map { "did you mean `\($0)`?" } ?? known.joined(separator: ", "))
            )
        }
        if let problem = contextProblem(request.context) { throw Refusal(.badRequest, "`context` \(problem)") }
        if let key = request.key, key.isEmpty || key.utf8.count > 1024 {
            throw Refusal(.badRequest, "a key has 1 to 1024 bytes")
        }
        var named: Set<String> = []
        let to = request.to.filter { named.insert($0).inserted }
        let arrival = intake.arrival(
            of: file, folder, to: to.isEmpty ? folder.uploadTo : to, key: request.key,
            context: request.context, again: request.again, facts: await intake.facts(of: file))
        guard let outcome = try await house.store.record([arrival]).first else { return [] }
        intake.count(outcome, of: file.folder)
        house.stagerBell.ring()
        switch outcome {
        case .recorded(_, let ids), .newVersion(_, let ids):
            return await views(try await ids.asyncCompactMap { try await self.house.store.row($0) }[...])
        case .renewed(let asset):
            let ids = try await house.store.uploads(of: asset).map(\.id)
            return await views(try await ids.asyncCompactMap { try await self.house.store.row($0) }[...])
        case .known:
            throw Refusal(
                .duplicate, "\(path.display) was taken up before in this version: `--again` uploads it once more")
        case .keyTaken(let holder):
            throw Refusal(.conflict, "upload \(holder) is under way with the same key", id: holder)
        }
    }

    /// A file that a person hands in: whole because they say so, and in the folder whose path it lies below.
    private func settledFile(at path: FilePath) async throws -> SettledFile {
        let look: FileLook
        do { look = try await blocking { try FileLook(at: path) } } catch let error as SystemError {
            throw Refusal(error.isMissing ? .notFound : .badRequest, error.description)
        }
        guard look.isRegular else { throw Refusal(.badRequest, "\(path.display) is no regular file") }
        let rules = house.settings.folders.map(\.watch)
        let around = rules.filter { path.relative(to: $0.path) != nil }
        // Several folders may share a path and tell their files apart by name; a person may also hand in what none takes.
        let taker = around.first { rule in
            path.relative(to: rule.path).map { NameRules(include: rule.include, exclude: rule.exclude).takes($0) }
                ?? false
        }
        guard let rule = taker ?? around.first, let relative = path.relative(to: rule.path) else {
            throw Refusal(
                .badRequest,
                "\(path.display) is below none of the configured folders: "
                    + rules.map { "\($0.name) (\($0.path.display))" }.joined(separator: ", "))
        }
        // Of the file: another disk may be mounted below the folder, or stand where one stood before.
        fileSystems.forget()
        let system = fileSystems.identity(at: path, device: look.device)
        let identity = StoredIdentity(look, folder: rule.name, relative: relative, on: system)
        return SettledFile(
            folder: rule.name, root: rule.path, relative: relative, look: look, identity: identity, settledBy: .added)
    }
}
