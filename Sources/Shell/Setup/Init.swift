internal import API
internal import Config
internal import Core
internal import Daemon
internal import Destinations
internal import Linux

extension Verb {
    static let initialize: Verb = Verb(
        "init", "set up one folder and one destination, by questions, options or a file of answers",
        details: SetupRun.details, options: SetupRun.options,
        examples: [
            ("sudo sluice init", "Asks, and sets up the service."),
            (
                "sudo sluice init --folder /srv/camera --to https://nas.example/files/ --token-file ./token --start",
                "Asks nothing."
            ),
            (
                "sudo sluice init --folder /srv/camera --to 's3 bucket=videos region=eu-central-1' --token-file ./key",
                "Uploads to a bucket."
            ),
            ("sudo sluice init --from answers.yaml", "For many boxes: the same answers on each."),
        ]
    ) { call in try await SetupRun(call).run() }
}

/// One call of `sluice init`.
private struct SetupRun {
    static let details = [
        "Asks at most six questions, asks the destination whether it takes uploads, sends one test file and removes it, "
            + "writes the configuration with comments, and starts the service if you want that. It never "
            + "overwrites a configuration: `sluice edit` changes one. On any failure it removes what it made.",
        "--to takes a folder, the address of a tus server, or a type of destination and its settings, with the names "
            + "that `sluice destinations TYPE` lists: \"s3 bucket=videos region=eu-central-1\". Secrets are no settings "
            + "there: they are typed, and not shown, or read from the file of --token-file. For a bucket and for "
            + "ApsaraVideo VOD it has the id and the key as two words, or is a credentials file.",
        "The test file is sent where it can be removed again: by a folder, a tus server that allows it, a bucket whose "
            + "key may delete, and a Vimeo token with the scope `delete`. Elsewhere, as at ApsaraVideo VOD and at "
            + "forms, `--test-file any` sends it, and it stays.",
        "Run by root for the service of the system, it checks the folders, the secret and the destination with the "
            + "rights of the service's user and groups.",
        "With --folder and --to, or with --from, it asks nothing. --from reads a YAML file with the keys `folder`, "
            + "`to`, `token_file`, `after`, `metered`, `hours` and `start`; an option goes before the file. The "
            + "same answers a second time change nothing, and the status is 0.",
        "Run by root it writes /etc/sluice/sluice.yaml, and files that the group `sluice` may read. Run by another "
            + "user it writes ~/.config/sluice/sluice.yaml, and files of that user alone. The token is copied to a "
            + "file beside the configuration.",
    ]

    static let options: [Option] = [
        Option("folder", "PATH", takes: .file, "the folder to watch"),
        Option("to", "WHERE", "a folder, the address of a tus server, or a type of destination with settings"),
        Option("token-file", "FILE", takes: .file, "a file with the token or the key of the destination"),
        Option("after", "ACTION", "keep (default), delete or move=TEMPLATE: what happens to an uploaded source"),
        Option("metered", "RULE", takes: .words(["pause", "allow"]), "whether to use metered networks"),
        Option("hours", "WINDOW", "send only at these times: 22:00-06:00"),
        Option(flag: "start", "start the service now, and at each boot"),
        .testFile("the test file: where it can be removed (default), to any destination, or not at all"),
        Option(flag: "offline", "do not contact the destination"),
        Option("from", "FILE", takes: .file, "read the answers from a YAML file"),
        .config,
    ]

    let call: Invocation
    let detection: SetupDetection
    let file: ConfigurationFile
    let interrupt: SetupInterrupt

    init(_ call: Invocation) throws {
        self.call = call
        interrupt = SetupInterrupt(call.console)
        detection = SetupDetection(home: call.console.environment("HOME").map { FilePath($0) })
        let named = ConfigurationFile(call.arguments, call.console)
        // An ordinary user's own, also where the system has one.
        let path = named.isNamed ? named.path : DefaultPlaces.ownConfiguration(environment: call.console.environment)
        // The paths of other files follow from it, and a configuration has absolute ones.
        file = ConfigurationFile(path: try absolute(path), call.console)
    }

    private var isRoot: Bool { UserDatabase.user == 0 }
    /// Whether the system's service will read the configuration.
    private var isForService: Bool { isRoot && DefaultPlaces.isOfSystem(file.path) }

    /// Whether a unit reads the configuration: the system's, or the user's own.
    private var hasService: Bool {
        isForService
            || !isRoot && file.path == DefaultPlaces.ownConfiguration(environment: call.console.environment)
    }

    func run() async throws -> ExitCode {
        interrupt.watch(call.signals)
        var answers = try await givenAnswers()
        var token = try await givenToken(answers)
        let isThere = try FileStatus.ifPresent(at: file.path) != nil
        if answers.folder == nil || answers[.to] == nil {
            if isThere { throw alreadyConfigured }
            guard call.console.isTerminal, ByteStream.standardInput.isTerminal else {
                let missing = answers.folder == nil ? "--folder" : "--to"
                throw CommandError(
                    .usage, "sluice init: \(missing) is missing, and without a terminal nothing can be asked",
                    remedy: "Give it, or name a file of answers with --from. See `sluice init --help`.")
            }
            try await describeMachine()
            let dialogue = SetupDialogue(
                console: call.console, detection: detection, asksToStart: detection.hasSystemd && hasService)
            if let typed = try await dialogue.complete(&answers) { token = Array(typed.utf8) }
        }
        guard let folder = answers.folder, let target = answers.target else { throw alreadyConfigured }
        try requireSecret(of: target, token)
        try requireService(answers)
        token = token.map { target.secretFile($0) }
        let setup = SetupConfiguration(
            folder: folder, target: target, secrets: token.map { _ in file.path.parent }, answers: answers)
        if isThere { return try await confirmUnchanged(setup, token) }
        return try await write(setup, token, answers)
    }

    // MARK: Answers

    private var types: [DestinationSchema] { DestinationTable.builtIn.map(\.type) }

    /// Whether an answer for the destination is a path, which may be relative to the folder of this process.
    private func isPath(_ text: String) -> Bool {
        let first = text.prefix { $0 != " " }
        return !text.contains("://") && !text.contains("=") && !types.contains { $0.name == first }
    }

    private func givenAnswers() async throws -> SetupAnswers {
        var answers = SetupAnswers(types: types)
        if let path = call.arguments.path("from") {
            do { answers = try await blocking { try SetupAnswers.load(path, types: types) } } catch let errors
                as ConfigErrors
            {
                var error = CommandError(.config, "\(errors)")
                error.isBare = true
                throw error
            }
        }
        let options: [(String, SetupAnswers.Question)] = [
            ("folder", .folder), ("to", .to), ("token-file", .tokenFile), ("after", .after), ("metered", .metered),
            ("hours", .hours),
        ]
        for (option, question) in options {
            guard let given = call.arguments.path(option) else { continue }
            guard let text = given.text else {
                throw Arguments.usage("--\(option) is not UTF-8, which a configuration is", .initialize)
            }
            let isPath = question == .folder || question == .tokenFile || question == .to && isPath(text)
            do { try answers.set(question, isPath ? try absolute(given).text ?? text : text) } catch let problem
                as SetupAnswers.Problem
            {
                throw Arguments.usage("--\(option) \(problem.text)", .initialize)
            }
        }
        if call.arguments.has("start") { try answers.set(.start, "true") }
        return answers
    }

    /// Before anything is written.
    private func requireSecret(of target: SetupTarget, _ secret: [UInt8]?) throws {
        let what: String
        switch (target.secret, secret) {
        case (.token(isRequired: true), nil): what = "a token"
        case (.key, nil): what = "the id and the key of the account"
        case (.none, .some):
            throw CommandError(
                .usage, "sluice init: a destination of the type `\(target.type)` takes no token here",
                remedy: "Leave --token-file out.")
        case (.token, .some(let bytes)) where bytes.contains { $0 < 0x20 || $0 == 0x7F }:
            throw CommandError(
                .usage, "sluice init: the token has several lines, or a control character, which no header may have",
                remedy: "Write it alone, in one line. Nothing was written.")
        default: return
        }
        throw CommandError(
            .usage, "sluice init: `\(target.type)` needs \(what), and --token-file is missing",
            remedy: "Name a file with it. See `sluice init --help`.")
    }

    private func givenToken(_ answers: SetupAnswers) async throws -> [UInt8]? {
        guard let path = answers.tokenFile else { return nil }
        var bytes: [UInt8]
        do throws(SystemError) { bytes = try Files.read(path, limit: 64 << 10) } catch {
            throw CommandError(
                error.isMissing ? .notFound : .notNow, "the token file \(path.display) cannot be read: \(error.reason)",
                remedy: "Nothing was written.")
        }
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        guard !bytes.isEmpty else {
            throw CommandError(.usage, "the token file \(path.display) is empty", remedy: "Nothing was written.")
        }
        return bytes
    }

    private func describeMachine() async throws {
        try call.console.line(await SetupDetection.network())
        if let zone = detection.zone { try call.console.line("times of the day are those of \(printable(zone))") }
    }

    // MARK: An existing configuration

    private var alreadyConfigured: CommandError {
        CommandError(
            .conflict, "\(file.path.display) exists already, and `sluice init` overwrites nothing",
            remedy: "Change it with `sluice edit`, or name another file with --config FILE.")
    }

    private func confirmUnchanged(_ setup: SetupConfiguration, _ token: [UInt8]?) async throws -> ExitCode {
        guard let target = Files.real(file.path), try FileStatus(at: target).isRegular else {
            throw CommandError(
                .conflict, "\(file.path.display) is no file, or a link that leads to none; nothing was written",
                remedy: "Remove it, or name a file with --config FILE.")
        }
        guard try Files.read(target, limit: Settings.maxFileSize) == Array(setup.yaml.utf8) else {
            throw alreadyConfigured
        }
        if let path = setup.secret, let token, try Files.read(path) != token + [UInt8(ascii: "\n")] {
            throw CommandError(
                .conflict, "\(path.display) has another token",
                remedy: "Replace its content, and run `sluice reload`.")
        }
        try call.console.line("\(file.path.display) has these answers already; nothing was changed")
        return .ok
    }

    // MARK: Writing

    private var isOffline: Bool { call.arguments.has("offline") }

    /// Before anything is written.
    private func requireService(_ answers: SetupAnswers) throws {
        guard answers.start == true, detection.hasSystemd, !hasService else { return }
        throw CommandError(
            .usage, "sluice init: no service reads \(file.path.display), so none can be started for it",
            remedy: "Leave --start out, and start the daemon with `sluice run --config \(file.path.display)`.")
    }

    private func write(_ setup: SetupConfiguration, _ token: [UInt8]?, _ answers: SetupAnswers) async throws
        -> ExitCode
    {
        let user = try serviceUser()
        let testFile = isOffline ? .none : try call.testFile(.initialize) ?? .removable
        let files = SetupFiles(file.path, group: user?.group)
        interrupt.made(by: files)
        do {
            try files.makeFolder(file.path.parent)
            if let path = setup.secret, let token, path != answers.tokenFile {
                try files.write(path, token + [UInt8(ascii: "\n")])
            }
            let draft = file.path.parent.appending(
                FilePath(".\(file.path.name.display).init-\(hexadecimal(Random.bytes(4))).yaml"))
            try files.write(draft, Array(setup.yaml.utf8))
            let settings = try await checked(draft)
            try refuseFoldersOfOthers(settings)
            try await interrupt.testing(if: !isOffline && testFile != .none) {
                try await ServiceExamination(console: call.console, user: user).run(
                    draft, settings, folder: setup.folderName, destination: isOffline ? nil : setup.destinationName,
                    testFile)
            }
            try files.publish(draft)
        } catch {
            files.undo()
            throw files.explained(error)
        }
        do { try await report(setup, answers) } catch is Console.ClosedError {
            throw CommandError(
                .failed, "\(file.path.display) is written, but the output cannot be, and no service was started",
                remedy: "Run `sluice init` again with the same answers and a working output, or see `sluice config`.")
        }
        return .ok
    }

    /// The user of the system's service; `nil` where no service reads the configuration, or one that is root's.
    private func serviceUser() throws -> ServiceUser? {
        guard isForService else { return nil }
        let name = DefaultPlaces.unit(of: file.path)
        do throws(ServiceUser.MissingAccount) {
            if let unit = ServiceUnit(name) { return try ServiceUser(unit) }
        } catch {
            throw CommandError(
                .config, "\(name) cannot start: \(error)",
                remedy:
                    "Nothing was written. `systemd-sysusers` makes the accounts of the package; then run `sluice init` "
                    + "again.")
        }
        // An installation without systemd.
        return UserDatabase.user(named: "sluice").map {
            ServiceUser(
                name: $0.name, user: $0.user, group: $0.group, groups: UserDatabase.groups(of: $0.name, with: $0.group))
        }
    }

    /// Refuses folders of the system, which no unit may open for the service.
    private func refuseFoldersOfOthers(_ settings: Settings) throws {
        guard isForService, detection.hasSystemd else { return }
        do { _ = try UnitPaths(settings, file: file.path) } catch {
            throw CommandError(.config, "\(error)", remedy: "Nothing was written. Run `sluice init` again.")
        }
    }

    private func checked(_ draft: FilePath) async throws -> Settings {
        do {
            let loaded = try await file.read(draft: draft)
            for warning in loaded.warnings { call.console.error("\(warning)") }
            return loaded.settings
        } catch let errors as ConfigErrors {
            throw CommandError(.config, "\(errors)", remedy: "Nothing was written.")
        }
    }

    // MARK: The end

    private func report(_ setup: SetupConfiguration, _ answers: SetupAnswers) async throws {
        let isNamed = call.arguments.has("config")
        try call.console.line("wrote \(file.path.display)        undo: rm \(shellWord(file.path))")
        if let token = setup.secret {
            try call.console.line("wrote \(token.display)        undo: rm \(shellWord(token))")
        }
        let hasNewUnit = try await openFolders()
        guard detection.hasSystemd, hasService, answers.start == true else {
            let option = isNamed ? " --config \(file.path.display)" : ""
            let reload = hasNewUnit ? "`systemctl daemon-reload`, " : ""
            let start = (systemctl + ["enable", "--now", DefaultPlaces.unit(of: file.path)]).joined(separator: " ")
            let service = detection.hasSystemd && hasService ? "\(reload)`\(start)`, or " : ""
            try call.console.line("next: `sluice check\(option)`, then \(service)`sluice run\(option)`")
            return
        }
        if hasNewUnit { try await run(systemctl + ["daemon-reload"]) }
        let unit = DefaultPlaces.unit(of: file.path)
        try await run(systemctl + ["enable", "--now", unit])
        // A unit whose condition is not met is skipped without an error: a user's systemd may have another $XDG_CONFIG_HOME.
        try await run(systemctl + ["is-active", unit], failure: "systemd has not started \(unit)")
        try call.console.line(
            "started the service        undo: \((systemctl + ["disable", "--now", unit]).joined(separator: " "))")
        try call.console.line(
            "next: `sluice check --running` checks folders and destinations with the service's rights")
        if !isRoot { try call.console.line("`loginctl enable-linger` lets it run while you are not logged in") }
    }

    private var systemctl: [String] { ["systemctl"] + (isRoot ? [] : ["--user"]) }

    /// Lets the system's service write where the configuration needs it. Returns whether systemd has to read a new file.
    private func openFolders() async throws -> Bool {
        guard isForService, detection.hasSystemd else { return false }
        let settings = try await file.loadAsService().settings
        do {
            let paths = try UnitPaths(settings, file: file.path)
            guard !paths.entries.isEmpty else { return false }
            let text = paths.dropIn(for: file.path)
            let place = try await blocking { try SystemdDropIn.install(text, for: paths.unit) }
            for note in paths.notes { try call.console.line("\(note).") }
            try call.console.line("wrote \(place.display)        undo: rm \(shellWord(place))")
            return true
        } catch let refusal as UnitPaths.Refusal {
            call.console.error("the service cannot write there: \(refusal)")
            return false
        } catch let error as CommandError where error.status == .conflict {
            // The configuration is written, and `check --running` names each folder that this leaves closed.
            call.console.error("the folders are not opened for the service: \(error)")
            return false
        }
    }

    /// - Parameter failure: In place of the command, if its failure has another cause.
    private func run(_ words: [String], failure: String? = nil) async throws {
        let program = Program(
            words: words.map { Array($0.utf8) }, environment: Program.plainEnvironment, folder: "/")
        do {
            _ = try await blocking { try program.collectOutput(atMost: 64 << 10, within: .seconds(120)) }
        } catch let problem as Program.Problem {
            throw CommandError(
                .notNow,
                "the configuration is written, but "
                    + (failure ?? "`\(words.joined(separator: " "))` failed: \(problem)"),
                remedy:
                    "See `\((systemctl + ["status", DefaultPlaces.unit(of: file.path)]).joined(separator: " "))` and "
                    + "`journalctl \(isRoot ? "" : "--user ")-u \(DefaultPlaces.unit(of: file.path))`.")
        }
    }
}
