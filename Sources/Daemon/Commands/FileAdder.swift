internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Adds files that a person names: a file, or all files in a folder.
struct FileAdder: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let sources: SourceFolders
    let fileSystems: FileSystems
    let intake: Intake
    let views: UploadViews

    private var checks: RequestChecks { RequestChecks(configuration: context.configuration.value) }

    func add(_ request: AddRequest) async throws -> UploadsReply {
        try lifecycle.requireReady()
        // A hexadecimal digit is never a slash.
        let isText = request.path.hasPrefix("/")
        guard let raw = isText ? Array(request.path.utf8) : bytes(hexadecimal: request.path) else {
            throw Refusal(.badRequest, "`path` takes an absolute path, or its bytes in hexadecimal")
        }
        let path = FilePath(bytes: raw)
        guard path.isAbsolute, path == path.normalised, !raw.contains(0) else {
            throw Refusal(.badRequest, "`path` takes an absolute path without `.`, `..` and NUL")
        }
        try checks.checkOptions(to: request.to, key: request.key, context: request.context)
        let rules = context.settings.presentFolders.map(\.watch)
        if rules.contains(where: { $0.path == path || $0.path.relative(to: path) != nil }) {
            return try await add(all: path, request)
        }
        let around = rules.filter { path.relative(to: $0.path) != nil }
        // Several folders may share a path and select their files by name and size; a person may also add a file that
        // no folder selects.
        let selecting = around.filter { rule in
            path.relative(to: rule.path).map { NameRules(include: rule.include, exclude: rule.exclude).matches($0) }
                ?? false
        }
        let size = try? await blocking { try FileStatus(at: path).size }  // the inspection below reports the error
        let selected = selecting.first { rule in size.map { rule.limits.allows(size: $0) } ?? true } ?? selecting.first
        guard let rule = selected ?? around.first, let relative = path.relative(to: rule.path) else {
            throw outsideRefusal(path)
        }
        if let own = relative.components.first(where: TemporaryNames.isOwn) {
            throw Refusal(
                .conflict,
                "\(path.display) was not added: Sluice uses names like \(own.display) for sources that it is deleting, and for "
                    + "incomplete files. Rename the file if it is yours")
        }
        let (sources, fileSystems) = (sources, fileSystems)
        let (status, system): (FileStatus, FileSystemIdentity?)
        do {
            (status, system) = try await blocking {
                let top = try sources[rule.path].open()
                let status = try top.status(at: relative)
                // The file's own device: another disk may be mounted below the folder, or at a place where one was
                // mounted before.
                fileSystems.forget()
                return (status, fileSystems.identity(of: top, at: relative, device: status.device))
            }
        } catch let error as SystemError { throw refusal(of: path, error) }
        if status.isDirectory { return try await add(all: path, request) }
        if status.isLink { throw linkRefusal(path) }
        guard status.isRegular else { throw Refusal(.badRequest, "\(path.display) is not a regular file") }
        let file = SettledFile(
            folder: rule.name, root: rule.path, relative: relative, status: status,
            identity: FileIdentity(status, folder: rule.name, relative: relative, on: system), settledBy: .added)
        guard let result = try await record([file], request).first else {
            throw Refusal(.badRequest, "\(path.display) is in no configured folder")
        }
        return try await views.reply(try result.get())
    }

    private func refusal(of path: FilePath, _ error: SystemError) -> Refusal {
        if error.isLink { return linkRefusal(path) }
        if error.isOfAnotherFolder { return Refusal(.conflict, error.description) }
        return Refusal(error.isMissing ? .notFound : .badRequest, error.description)
    }

    /// The target of a link may be anywhere, and belong to any user.
    private func linkRefusal(_ path: FilePath) -> Refusal {
        Refusal(
            .conflict,
            "\(path.display) is a symbolic link or reached through one inside the configured folder, and links are not followed. Add the file "
                + "under its own path, in a folder that is configured")
    }

    /// Adds all files in a folder and below it that the configured folders select there, a piece at a time.
    ///
    /// - Returns: The newest hundred, how many there are, and how many files were refused.
    /// - Throws: ``Refusal`` when no configured folder contains it, or selects a file there.
    private func add(all path: FilePath, _ request: AddRequest) async throws -> UploadsReply {
        if request.key != nil {
            throw Refusal(.badRequest, "`key` names one upload, and \(path.display) is a folder")
        }
        if request.uploadURL != nil {
            throw Refusal(.badRequest, "`upload_url` is the address of one upload, and \(path.display) is a folder")
        }
        let rules = context.settings.presentFolders.map(\.watch)
        let isOurs = rules.contains {
            $0.path == path || path.relative(to: $0.path) != nil || $0.path.relative(to: path) != nil
        }
        if !isOurs { throw outsideRefusal(path) }
        let (clocks, sources) = (context.clocks, sources)
        var survey = try await blocking { FolderSurvey(rules: rules, in: sources, below: path, clocks: clocks) }
        var (newest, count, refused): ([String], Int, Int) = ([], 0, 0)
        var refusal: Refusal?
        while true {
            let (next, piece) = try await blocking { [survey] in
                var survey = survey
                let piece = survey.next()
                return (survey, piece)
            }
            survey = next
            guard let piece else { break }
            for trouble in piece.troubles {
                refused += 1
                refusal = refusal ?? Refusal(.badRequest, trouble)
            }
            // Files that a folder leaves out for being empty are left out here as well.
            let files = piece.files.filter {
                $0.status.size > 0 || context.configuration.folder($0.folder)?.empty == .upload
            }
            for some in files.pieces(of: Self.inOneGo) {
                for result in try await record(Array(some), request) {
                    switch result {
                    case .success(let ids):
                        count += ids.count
                        newest = Array((newest + ids).suffix(100))
                    case .failure(let why):
                        refused += 1
                        refusal = refusal ?? why
                    }
                }
            }
        }
        if count == 0, refused == 0 {
            throw Refusal(
                .notFound,
                "no configured folder accepts a file in \(path.display); `sluice why FILE` explains it for one file")
        }
        return UploadsReply(
            uploads: try await views.reply(newest.reversed()).uploads, count: count,
            refused: refused == 0 ? nil : refused,
            refusal: refusal?.message)
    }

    /// Files in one transaction.
    private static let inOneGo = 200

    /// Records files by the settings of their folders, in one transaction.
    ///
    /// - Returns: For each the ids of its uploads, or the reason why there are none; nothing for a file whose folder
    ///   was removed meanwhile.
    private func record(_ files: [SettledFile], _ request: AddRequest) async throws -> [Result<[String], Refusal>] {
        var named: Set<String> = []
        let to = request.to.filter { named.insert($0).inserted }
        var arrivals: [NewAsset] = []
        for file in files {
            guard let folder = context.configuration.folder(file.folder) else { continue }
            let url = try checks.checkRequests(
                request.headers, url: request.url, uploadURL: request.uploadURL,
                for: to.isEmpty ? folder.uploadTo : to)
            var file = file
            file.settledBy = .added
            let facts = await intake.assets.facts(of: file)
            // Destinations that a person names are no alternatives: the file goes to each of them.
            let routes = to.isEmpty ? intake.assets.routes(for: file, folder, facts) : to.map { UploadRoute(to: $0) }
            if routes.isEmpty {
                throw Refusal(
                    .conflict,
                    "no item of `upload_to` of folder \(folder.watch.name) takes \(file.path.display): name a destination with `--to`"
                )
            }
            arrivals.append(
                intake.assets.arrival(
                    of: file, folder, to: routes, key: request.key, context: request.context,
                    headers: request.headers, url: url, again: request.again, facts: facts))
        }
        if arrivals.isEmpty { return [] }
        let outcomes = try await context.store.write { [arrivals] tx in try tx.arrivals.record(arrivals) }
        var results: [Result<[String], Refusal>] = []
        for (arrival, outcome) in zip(arrivals, outcomes) {
            intake.count(outcome, of: arrival.file.folder)
            switch outcome {
            case .recorded(_, let ids), .newVersion(_, let ids): results.append(.success(ids))
            case .renewed(let asset):
                results.append(.success(try await context.store.read { try $0.uploads.of(asset) }.map(\.id)))
            case .known:
                results.append(
                    .failure(
                        Refusal(
                            .duplicate,
                            "this version of \(arrival.file.path.display) was added before: `--again` uploads it once more"
                        )))
            case .keyTaken(let holder):
                results.append(
                    .failure(
                        Refusal(.conflict, "upload \(holder) with the same key is in progress", id: holder)))
            case .copyAwaited(let upload):
                results.append(
                    .failure(
                        Refusal(
                            .conflict,
                            "upload \(upload) of \(arrival.file.path.display) waits for its copy, and is for other "
                                + "destinations or an earlier version: add the file when it is copied, or cancel that upload first",
                            id: upload)))
            }
        }
        return results
    }

    private func outsideRefusal(_ path: FilePath) -> Refusal {
        Refusal(
            .badRequest,
            "\(path.display) is not below a configured folder: "
                + (context.settings.presentFolders + context.settings.patternFolders).map {
                    "\($0.watch.name) (\($0.watch.path.display))"
                }.joined(separator: ", ")
        )
    }
}
