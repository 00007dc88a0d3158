internal import API
internal import Control
package import Core
internal import Glibc
package import Linux

/// The command line: takes words, returns an exit status. Everything that `sluice` does begins here.
package enum Shell {
    /// Every verb, in the order of `sluice help`.
    package static let verbs: [Verb] = [
        .runDaemon, .initialize, .demo, .check, .destinations, .config, .machineReport, .edit, .doctor, .hook, .rebuild,
        .receive,
        .status, .top, .web, .list, .show, .why, .plan, PolicyCommand.verb, .usage, .quota, .remote, .orphans, .trace,
        .metrics,
        .events,
        .add, .pause,
        .resume, .cancel, .retry, .priority, .remove, .flush, .allow, .limit, .reload, .rescan, .folder, .systemdPaths,
        .completions, .version, .help,
    ]

    /// The process: reads its words, runs their verb, and exits.
    ///
    /// It is not an `async` main: its thread would belong to the runtime, which waits with no signal blocked, and
    /// SIGTERM would end the process there and then. Here that thread keeps its signals blocked and reads them.
    package static func main() -> Never {
        Machine.occupyStandardDescriptors()
        let words = words
        let signals: Signals?
        do { signals = try holdSignals(for: words) } catch {
            Console.standard.error("sluice: \(error)")
            exit(ExitCode.failed.rawValue)
        }
        do { try TaskPool.install() } catch {
            Console.standard.error("sluice: no thread or descriptor is available: \(error)")
            Console.standard.error(
                "Raise the limits: `ulimit -u`, `-n` and `-v`; under systemd LimitNPROC=, LimitNOFILE=, TasksMax=, MemoryMax=."
            )
            exit(ExitCode.failed.rawValue)
        }
        // Detached on purpose: it is the whole program, and ends by ending the process.
        Task.detached { exit(await run(words, console: .standard, signals: signals).rawValue) }
        if let signals { signals.serve() }
        while true { pause() }
    }

    /// The words of this process's command line after the program's name. Bytes, because file names are bytes.
    private static var words: [FilePath] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { FilePath(bytes: UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
        }
    }

    /// Takes over the signals that the verb handles itself, and raises the limit of descriptors, before any other
    /// thread exists.
    ///
    /// - Returns: `nil` for verbs that a signal may simply end.
    private static func holdSignals(for words: [FilePath]) throws(SystemError) -> Signals? {
        Signals.ignoreNuisances()
        // Many verbs read secrets.
        Machine.forbidDumps()
        guard let verb = split(words).verb else { return nil }
        if ["init", "edit"].contains(verb) { return try Signals(keepsIgnored: true) }
        // A program that stopped as it is would leave the shell without a cursor and an echo.
        if verb == "top" { return try Signals(Signals.Signal.usual + [.suspend, .resume], keepsIgnored: true) }
        guard ["run", "receive", "demo"].contains(verb) else { return nil }
        // The first two have a descriptor for each of their clients. With a lower limit they accept fewer clients.
        Machine.raiseOpenFileLimit()
        return try Signals()
    }

    package static func run(_ words: [FilePath], console: Console, signals: Signals?) async -> ExitCode {
        do {
            return try await dispatch(words, console, signals)
        } catch is Console.ClosedError {
            guard let reason = console.failure() else { return .ok }
            console.error("sluice: the output could not be written: \(reason)")
            return .failed
        } catch {
            let (status, message, remedy, isBare) = explain(error)
            let label = console.colour ? console.styled("sluice:", .red) : "sluice:"
            // Usage errors name their verb already.
            console.error(isBare || message.hasPrefix("sluice") ? message : "\(label) \(message)")
            if let remedy { console.error(remedy) }
            return status
        }
    }

    private static func dispatch(_ words: [FilePath], _ console: Console, _ signals: Signals?) async throws
        -> ExitCode
    {
        let (name, rest) = split(words)
        guard let name else {
            if let first = rest.first?.lossyText {
                if first == "--help" || first == "-h" {
                    try console.raw(generalHelp(verbs, width: console.width))
                    return .ok
                }
                if first == "--version" { return try await dispatch(["version"] + rest.dropFirst(), console, signals) }
                throw CommandError(
                    .usage, "sluice: `\(printable(first))` needs a verb", remedy: "See `sluice help`.")
            }
            console.error(generalHelp(verbs, width: console.width))
            return .usage
        }
        guard let verb = verbs.first(where: { $0.name == name }) else {
            let near = closest(to: name, among: verbs.map(\.name))
            throw CommandError(
                .usage,
                "sluice: no verb `\(printable(name))`" + (near.map { "; did you mean `\($0)`?" } ?? ""),
                remedy: "See `sluice help`.")
        }
        let arguments = try Arguments(rest, of: verb)
        if arguments.has(.help) {
            try console.raw(verb.help(width: console.width))
            return .ok
        }
        return try await verb.run(Invocation(arguments: arguments, console: console, signals: signals))
    }

    /// The verb, and the words around it: options that all verbs share may come before it.
    private static func split(_ words: [FilePath]) -> (verb: String?, rest: [FilePath]) {
        var before: [FilePath] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            let text = word.lossyText
            guard text.hasPrefix("-") else { return (text, before + rest) }
            before.append(word)
            let takesValue = Option.client.contains { $0.value != nil && "--\($0.name)" == text }
            if takesValue, let value = rest.popFirst() { before.append(value) }
        }
        return (nil, before)
    }

    private static func explain(
        _ error: any Error
    ) -> (status: ExitCode, message: String, remedy: String?, isBare: Bool) {
        switch error {
        case let error as CommandError: (error.status, error.message, error.remedy, error.isBare)
        case let refusal as Refusal: (ExitCode(refusal.code), refusal.message, nil, false)
        case let error as ControlError: (ExitCode(error), error.description, error.remedy, false)
        default: (.failed, redacted(printable("\(error)")), nil, false)
        }
    }
}
