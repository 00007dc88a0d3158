internal import API
internal import Config
internal import Control
internal import Core
internal import Glibc
internal import Linux
internal import Synchronization
internal import Transport

extension Verb {
    static let edit: Verb = Verb(
        "edit", "change the configuration in an editor, check it, and reload the daemon",
        details: [
            "Copies the configuration beside itself, opens the copy in $SLUICE_EDITOR, $VISUAL or $EDITOR, else in "
                + "`editor`, `nano` or `vi`, and checks it like `sluice check` does, without asking destinations. "
                + "A copy without a mistake replaces the configuration at once, with its owner, group and mode. With a "
                + "mistake it shows each one with its place, and asks whether to edit again, to discard the copy, or "
                + "to keep it aside. A configuration that was changed by another program meanwhile is not replaced "
                + "(status 65).",
            "Then the daemon reads the configuration again, if it runs, and its answer is shown, as by `sluice "
                + "reload`.",
        ],
        options: [.config, .socket],
        examples: [
            ("sudo sluice edit", "Changes the configuration of the service."),
            ("SLUICE_EDITOR='code --wait' sluice edit --config ./sluice.yaml", "Uses another editor and another file."),
        ]
    ) { call in
        guard call.console.isTerminal, ByteStream.standardInput.isTerminal else {
            throw CommandError(
                .usage, "sluice edit: standard input and output must be a terminal",
                remedy: "Without one, change a copy of the configuration, check it with `sluice check --config COPY`, "
                    + "rename it to the configuration, and run `sluice reload`.")
        }
        return try await EditSession(call).run()
    }
}

/// One call of `sluice edit`.
private struct EditSession {
    let call: Invocation
    let file: ConfigurationFile
    /// The file itself, where the configuration is a symbolic link.
    let target: FilePath
    /// Beside the target, with a name that no loader reads.
    let copy: FilePath
    private let interrupt: EditInterrupt

    init(_ call: Invocation) throws {
        self.call = call
        file = ConfigurationFile(call.arguments, call.console)
        guard let target = Files.real(file.path) else {
            throw CommandError(
                .notFound, "\(file.path.display) does not exist",
                remedy: "Name another file with --config FILE.")
        }
        self.target = target
        let suffix = hexadecimal(Random.bytes(4))
        copy = target.parent.appending(
            FilePath(bytes: [UInt8(ascii: ".")] + target.name.bytes + Array(".edit-\(suffix).yaml".utf8)))
        interrupt = EditInterrupt(copy, call.console)
    }

    func run() async throws -> ExitCode {
        interrupt.watch(call.signals)
        let editor = try editor()
        let socket = await socketBeforeChange()
        let folder = try Descriptor.open(target.parent, for: .folder)
        guard try folder.tryLock(named: target.parent) else {
            throw CommandError(
                .notNow, "another `sluice edit` is open for a file in \(target.parent.display)",
                remedy: "End it first.")
        }
        defer { folder.unlock() }
        let before = try Files.read(target, limit: Settings.maxFileSize)
        try requireOwner()
        do throws(SystemError) {
            let descriptor = try Descriptor.open(copy, for: .creating)
            try descriptor.write(before, named: copy)
            try descriptor.close(named: copy)
        } catch {
            guard error.isDenied || error.isReadOnly else { throw error }
            throw CommandError(
                .notNow, "\(target.parent.display) cannot be written: \(error.reason)",
                remedy: "Run it as root: `sudo sluice edit`.")
        }
        repeat {
            var failure = try await edit(with: editor)
            var text: [UInt8]?
            do throws(SystemError) { text = try Files.read(copy, limit: Settings.maxFileSize) } catch {
                failure = failure ?? "the editor left no file that can be read as \(copy.display): \(error.reason)"
            }
            if text == before {
                try Files.remove(copy)
                try call.console.line((failure.map { $0 + "; " } ?? "") + "nothing was changed")
                return failure == nil ? .ok : .failed
            }
            guard let problems = await problems(failure) else {
                try replace(before)
                try call.console.line("replaced \(file.path.display)")
                return try await reload(socket)
            }
            call.console.error(problems)
            switch await choice() {
            case .again: continue
            case .discard:
                try Files.removeIfPresent(copy)
                try call.console.line("discarded; \(file.path.display) is as it was")
                return .config
            case .aside where text == nil:
                try call.console.line("\(copy.display) is left as it is; \(file.path.display) is as it was")
                return .config
            case .aside:
                try call.console.line("your text is in \(copy.display); \(file.path.display) is as it was")
                return .config
            }
        } while true
    }

    // MARK: The editor

    private func editor() throws(CommandError) -> String {
        for name in ["SLUICE_EDITOR", "VISUAL", "EDITOR"] {
            if let editor = call.console.environment(name), editor.contains(where: { $0 != " " }) { return editor }
        }
        let folders = (call.console.environment("PATH") ?? "").split(separator: ":").map { FilePath(String($0)) }
        for name in ["editor", "nano", "vi"] {
            let isThere = folders.contains { $0.appending(FilePath(name)).withCString { access($0, X_OK) } == 0 }
            if isThere { return name }
        }
        throw CommandError(
            .usage,
            "sluice edit: there is no editor: neither $SLUICE_EDITOR, $VISUAL nor $EDITOR is set, and none of "
                + "editor, nano and vi is in $PATH", remedy: "Install one, or set $EDITOR.")
    }

    /// - Returns: Why the editor failed; `nil` when it ended well.
    private func edit(with editor: String) async throws -> String? {
        // As git does: a variable may have arguments and quotes, which a shell reads.
        let words = ["/bin/sh", "-c", editor + " \"$@\"", "editor"].map { Array($0.utf8) } + [copy.bytes]
        interrupt.isEditing.store(true, ordering: .relaxed)
        defer { interrupt.isEditing.store(false, ordering: .relaxed) }
        switch try await blocking({ try TerminalProgram(words: words.map { Array($0) }).run() }) {
        case .status(0): return nil
        case .status(let status): return "the editor ended with status \(status)"
        case .signal(let number): return "the editor was ended by signal \(number)"
        case .overdue, .stopped: return "the editor did not end"
        }
    }

    // MARK: The check

    /// - Parameter failure: Why the editor failed.
    /// - Returns: What is wrong with the copy; `nil` when nothing is. Warnings are printed.
    private func problems(_ failure: String?) async -> String? {
        if let failure { return failure }
        do {
            let loaded = try await file.read(draft: copy)
            for warning in loaded.warnings { call.console.error("\(warning)") }
            return nil
        } catch { return "\(error)" }
    }

    enum Choice { case again, discard, aside }

    /// Keeps the text aside when the terminal ends: it may be an hour's work.
    private func choice() async -> Choice {
        while true {
            call.console.error("(e)dit again, (d)iscard, (k)eep aside?")
            guard let answer = await readAnswer() else { return .aside }
            switch answer.lowercased().first {
            case "e": return .again
            case "d": return .discard
            case "k": return .aside
            default: continue
            }
        }
    }

    // MARK: The replacement

    /// Other users than root cannot give the new file to the owner of the old one.
    private func requireOwner() throws {
        var status = stat()
        try systemCall("stat", on: target.display) { target.withCString { stat($0, &status) } }
        guard UserDatabase.user != 0 && status.st_uid != UserDatabase.user else { return }
        throw CommandError(
            .notNow, "\(file.path.display) belongs to \(UserDatabase.shown(status.st_uid))",
            remedy: "Run it as that user: `sudo -u \(UserDatabase.shown(status.st_uid)) sluice edit`.")
    }

    /// A kill at any point leaves the old file or the new one.
    private func replace(_ before: [UInt8]) throws {
        // An editor may have replaced the copy, too.
        let text = try Descriptor.open(copy, for: .reading)
        let original = try Descriptor.open(target, for: .reading)
        try text.copyAccess(of: original, named: copy)
        try text.sync(named: copy)
        guard try Files.read(target, limit: Settings.maxFileSize) == before else {
            throw CommandError(
                .conflict, "\(file.path.display) was changed by another program meanwhile, and is not replaced",
                remedy: "Your text is in \(copy.display): compare the two, and run `sluice edit` again.")
        }
        try Files.rename(copy, to: target)
        try Files.syncFolder(target.parent)
    }

    // MARK: The daemon

    /// The socket of the daemon that runs, which the new text may not name any more. `nil` where the old text has a
    /// mistake.
    private func socketBeforeChange() async -> FilePath? {
        if let path = call.arguments.path("socket") { return path }
        // A mistake in the old text may be the reason for this edit.
        return try? await file.load(disk: .unchecked).settings.control.socket
    }

    private func reload(_ socket: FilePath?) async throws -> ExitCode {
        let path: FilePath
        if let socket { path = socket } else { path = try await call.socket() }
        let transport = Transport()
        let result: Result<ExitCode, any Error>
        do {
            result = .success(try await reloadDaemon(ControlClient(socket: path, transport: transport), call))
        } catch { result = .failure(error) }
        await transport.stop()
        do { return try result.get() } catch let error as ControlError {
            guard case .notRunning = error else { throw error }
            try call.console.line("no daemon answers at \(path.display); it reads the file when it starts")
            return .ok
        }
    }
}

/// What `sluice edit` does when it is ended by a signal: it names the copy, which may be an hour's work.
private final class EditInterrupt: Sendable {
    /// While the editor runs, Ctrl-C is for it alone.
    let isEditing = Atomic(false)
    private let copy: FilePath
    private let console: Console

    init(_ copy: FilePath, _ console: Console) {
        self.copy = copy
        self.console = console
    }

    func watch(_ signals: Signals?) {
        signals?.whenOneArrives { signal in
            if signal == .interrupt, self.isEditing.load(ordering: .relaxed) { return }
            // Without an answer about the copy, its name is better than none.
            let isThere = (try? FileStatus.ifPresent(at: self.copy)) != nil
            self.console.error("\nsluice: interrupted" + (isThere ? "; your text is in \(self.copy.display)" : ""))
            _exit(ExitCode.failed.rawValue)
        }
    }
}

/// The next line of standard input; `nil` at its end.
func readAnswer() async -> String? {
    await withCheckedContinuation { continuation in inBackground { continuation.resume(returning: readLine()) } }
}
