internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

// Files that a person hands in.

extension Agent {
    package func add(_ request: AddRequest) async throws -> UploadsReply {
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
        let look: FileLook
        do { look = try await blocking { try FileLook(at: path) } } catch let error as SystemError {
            throw Refusal(error.isMissing ? .notFound : .badRequest, error.description)
        }
        if look.isDirectory { return try await add(all: path, request) }
        guard look.isRegular else { throw Refusal(.badRequest, "\(path.display) is no regular file") }
        guard let result = try await record([try settledFile(at: path, look)], request).first else {
            throw Refusal(.badRequest, "\(path.display) is in no configured folder")
        }
        return try await reply(try result.get())
    }

    /// Everything in a folder and below it that the configured folders take there, a piece at a time.
    ///
    /// - Returns: The newest hundred, how many there are, and how many files were refused.
    /// - Throws: ``Refusal`` when no configured folder has anything to do with it, or takes nothing there.
    private func add(all path: FilePath, _ request: AddRequest) async throws -> UploadsReply {
        if request.key != nil {
            throw Refusal(.badRequest, "`key` names one upload, and \(path.display) is a folder")
        }
        let rules = house.settings.folders.map(\.watch)
        let isOurs = rules.contains {
            $0.path == path || path.relative(to: $0.path) != nil || $0.path.relative(to: path) != nil
        }
        if !isOurs { throw elsewhere(path) }
        let clocks = house.clocks
        var survey = try await blocking { FolderSurvey(rules: rules, below: path, clocks: clocks) }
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
            // What a folder leaves out for being empty is left out here as well.
            let files = piece.files.filter { $0.look.size > 0 || house.folder($0.folder)?.empty == .upload }
            for start in stride(from: 0, to: files.count, by: Self.inOneGo) {
                for result in try await record(Array(files[start..<min(start + Self.inOneGo, files.count)]), request) {
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
                "nothing in \(path.display) is taken by a configured folder; `sluice why FILE` says of a file why")
        }
        return UploadsReply(
            uploads: try await reply(newest.reversed()).uploads, count: count, refused: refused == 0 ? nil : refused,
            refusal: refusal?.message)
    }

    /// Files in one transaction.
    private static let inOneGo = 200

    /// Writes files down as their folders say, in one transaction.
    ///
    /// - Returns: Of each the ids of its uploads, or why there are none; nothing for those whose folder is gone meanwhile.
    private func record(_ files: [SettledFile], _ request: AddRequest) async throws -> [Result<[String], Refusal>] {
        var named: Set<String> = []
        let to = request.to.filter { named.insert($0).inserted }
        var arrivals: [Arrival] = []
        for file in files {
            guard let folder = house.folder(file.folder) else { continue }
            try checkHeaders(request.headers, for: to.isEmpty ? folder.uploadTo : to)
            var file = file
            file.settledBy = .added
            arrivals.append(
                intake.arrival(
                    of: file, folder, to: to.isEmpty ? folder.uploadTo : to, key: request.key,
                    context: request.context, headers: request.headers, again: request.again,
                    facts: await intake.facts(of: file)))
        }
        if arrivals.isEmpty { return [] }
        let outcomes = try await house.store.record(arrivals)
        defer { house.stagerBell.ring() }
        var results: [Result<[String], Refusal>] = []
        for (arrival, outcome) in zip(arrivals, outcomes) {
            intake.count(outcome, of: arrival.file.folder)
            switch outcome {
            case .recorded(_, let ids), .newVersion(_, let ids): results.append(.success(ids))
            case .renewed(let asset):
                results.append(.success(try await house.store.uploads(of: asset).map(\.id)))
            case .known:
                results.append(
                    .failure(
                        Refusal(
                            .duplicate,
                            "\(arrival.file.path.display) was taken up before in this version: `--again` uploads it once more"
                        )))
            case .keyTaken(let holder):
                results.append(
                    .failure(
                        Refusal(.conflict, "upload \(holder) is under way with the same key", id: holder)))
            }
        }
        return results
    }

    private func elsewhere(_ path: FilePath) -> Refusal {
        Refusal(
            .badRequest,
            "\(path.display) is below none of the configured folders: "
                + house.settings.folders.map { "\($0.watch.name) (\($0.watch.path.display))" }.joined(separator: ", "))
    }

    /// A file that a person hands in: whole because they say so, and in the folder whose path it lies below.
    private func settledFile(at path: FilePath, _ look: FileLook) throws -> SettledFile {
        let rules = house.settings.folders.map(\.watch)
        let around = rules.filter { path.relative(to: $0.path) != nil }
        // Several folders may share a path and tell their files apart by name; a person may also hand in what none takes.
        let taker = around.first { rule in
            path.relative(to: rule.path).map { NameRules(include: rule.include, exclude: rule.exclude).takes($0) }
                ?? false
        }
        guard let rule = taker ?? around.first, let relative = path.relative(to: rule.path) else {
            throw elsewhere(path)
        }
        // Of the file: another disk may be mounted below the folder, or stand where one stood before.
        fileSystems.forget()
        let system = fileSystems.identity(at: path, device: look.device)
        let identity = StoredIdentity(look, folder: rule.name, relative: relative, on: system)
        return SettledFile(
            folder: rule.name, root: rule.path, relative: relative, look: look, identity: identity, settledBy: .added)
    }

    /// Their values may be secrets, and are in no message.
    private func checkHeaders(_ headers: [String: String], for destinations: [String]) throws {
        if headers.isEmpty { return }
        func refuse(_ problem: String) -> Refusal { Refusal(.badRequest, "`headers` \(problem)") }
        if headers.count > 16 { throw refuse("takes at most 16 names, not \(headers.count)") }
        if Set(headers.keys.map { $0.lowercased() }).count < headers.count {
            throw refuse("has a name twice; they are the same in upper and lower case")
        }
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            // RFC 9110, sections 5.1 and 5.6.2: a token. Of values only what no recipient reads in two ways.
            let isToken = name.utf8.allSatisfy {
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0
                    || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || "!#$%&'*+-.^_`|~".utf8.contains($0)
            }
            guard isToken, (1...64).contains(name.utf8.count) else {
                throw refuse(
                    "takes names of 1 to 64 letters, digits and `-`, not `\(printable(String(name.prefix(70))))`")
            }
            guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }), !value.hasPrefix(" "), !value.hasSuffix(" ") else {
                throw refuse("takes printable ASCII without space around it; the value of `\(name)` is something else")
            }
            if value.utf8.count > 4096 { throw refuse("takes values of at most 4 KiB; that of `\(name)` is longer") }
            for destination in destinations {
                if let objection = house.destinations[destination]?.objection(toHeader: name) {
                    throw refuse("cannot be for `\(destination)`: \(objection)")
                }
            }
        }
    }
}
