internal import API
internal import Core
internal import Linux

/// One word of the command line: the facts that help, usage errors, completions and the parser need.
package struct Verb: Sendable {
    package let name: String
    /// One line for `help`, without a full stop.
    package let summary: String
    /// The operands in the usage line, after the options: `ID...`, `[PATH...]`; empty for none.
    package let operands: String
    /// The words after the verb in the usage lines, where options exclude or require each other; empty where one line
    /// with any options and the operands says all.
    let usages: [String]
    /// The kind of the operands, for completion.
    package let operandHint: CompletionKind
    /// The permitted number of operands.
    package let operandCount: ClosedRange<Int>
    /// Further explanation: paragraphs.
    package let details: [String]
    package let options: [Option]
    /// Examples with their explanations.
    package let examples: [(command: String, does: String)]
    let run: @Sendable (Invocation) async throws -> ExitCode

    init(
        _ name: String, _ summary: String, operands: String = "", usages: [String] = [],
        takes hint: CompletionKind = .nothing, count: ClosedRange<Int> = 0...0, details: [String] = [],
        options: [Option] = [], examples: [(command: String, does: String)],
        run: @escaping @Sendable (Invocation) async throws -> ExitCode
    ) {
        self.name = name
        self.summary = summary
        self.operands = operands
        self.usages = usages
        operandHint = hint
        self.operandCount = count
        self.details = details
        self.options = options + [.help]
        self.examples = examples
        self.run = run
    }
}

/// One `--option`.
package struct Option: Sendable, Hashable {
    /// Without the two hyphens.
    package let name: String
    /// The placeholder of its value in help; `nil` for a flag.
    package let value: String?
    /// The kind of its value, for completion.
    package let hint: CompletionKind
    package let summary: String
    /// Whether it may be given more than once.
    package let repeats: Bool
    /// Whether the verb does nothing without it.
    package let isRequired: Bool

    init(flag name: String, _ summary: String) {
        self.name = name
        value = nil
        hint = .nothing
        repeats = false
        isRequired = false
        self.summary = summary
    }

    init(
        _ name: String, _ value: String, takes hint: CompletionKind = .nothing, repeats: Bool = false,
        required: Bool = false, _ summary: String
    ) {
        self.name = name
        self.value = value
        self.hint = hint
        self.summary = summary
        self.repeats = repeats
        isRequired = required
    }

    static let help = Option(flag: "help", "print this text")
    static let config = Option(
        "config", "FILE", takes: .file,
        "the configuration file (default: $SLUICE_CONFIG, or else a user's own ~/.config/sluice/sluice.yaml, or else "
            + "/etc/sluice/sluice.yaml)")
    /// For verbs that read no configuration: an alias or a script may pass the option to every verb.
    static let ignoredConfig = Option("config", "FILE", takes: .file, "ignored: this verb reads no configuration")
    static let socket = Option(
        "socket", "PATH", takes: .file, "the daemon's socket (default: `control.socket` of the configuration)")
    static let json = Option(flag: "json", "print one JSON object (or one on each line), for programs")
    static let logLevel = Option(
        "log-level", "LEVEL", takes: .words(Log.Level.allCases.map(\.name)),
        "error, warning, notice, info (default) or debug")
    static let logFormat = Option(
        "log-format", "FORMAT", takes: .words(["text", "json"]), "text (default) or json")

    /// The length of an exception from the policy.
    static let lasting = Option("for", "DURATION", "how long: 30m, 2h, 1d")

    /// Options of all verbs that talk to the daemon.
    static let client: [Option] = [.json, .config, .socket]
}

/// A verb with its words on the command line.
struct Invocation: Sendable {
    let arguments: Arguments
    let console: Console
    /// Blocked since the process began; `nil` for verbs that do not handle them.
    let signals: Signals?

    var json: Bool { arguments.has(.json) }
}

/// The operands and options of one call, checked against the verb's table.
struct Arguments: Sendable {
    /// Bytes, because file names are bytes.
    private(set) var operands: [FilePath] = []
    private var values: [String: [FilePath]] = [:]

    func has(_ option: Option) -> Bool { values[option.name] != nil }
    func has(_ name: String) -> Bool { values[name] != nil }
    var optionNames: Set<String> { Set(values.keys) }
    /// The last value given.
    func path(_ name: String) -> FilePath? { values[name]?.last }
    func text(_ name: String) -> String? { values[name]?.last?.lossyText }
    func texts(_ name: String) -> [String] { (values[name] ?? []).map(\.lossyText) }

    /// - Parameter words: The words after the verb, and options before it.
    init(_ words: [FilePath], of verb: Verb) throws(CommandError) {
        var rest = words[...]
        var onlyOperands = false
        while let word = rest.popFirst() {
            let text = word.lossyText
            if onlyOperands || text == "-" || !text.hasPrefix("-") {
                operands.append(word)
            } else if text == "--" {
                onlyOperands = true
            } else if text == "-h" {
                values[Option.help.name] = [""]
            } else if text == "-o", let output = verb.options.first(where: { $0.name == "output" }) {
                values[output.name, default: []].append(try Self.value(of: output, given: nil, &rest, verb))
            } else {
                let cut = word.bytes.firstIndex(of: UInt8(ascii: "="))
                let name = String(decoding: word.bytes[..<(cut ?? word.bytes.endIndex)].dropFirst(2), as: UTF8.self)
                guard text.hasPrefix("--"), let option = verb.options.first(where: { $0.name == name }) else {
                    throw Self.unknown(text.hasPrefix("--") ? "--" + name : text, verb)
                }
                let given: FilePath? = cut.map { FilePath(bytes: word.bytes[($0 + 1)...]) }
                values[name, default: []].append(try Self.value(of: option, given: given, &rest, verb))
                guard option.repeats || values[name]?.count == 1 else {
                    throw Self.usage("--\(name) may be given only once", verb)
                }
            }
        }
        guard !has(.help) else { return }
        if let missing = verb.options.first(where: { $0.isRequired && !has($0) }) {
            throw Self.usage("\(missing.written) is missing", verb)
        }
        guard operands.count >= verb.operandCount.lowerBound else {
            throw Self.usage("\(verb.operands) is missing", verb)
        }
        if operands.count > verb.operandCount.upperBound {
            let surplus = operands[verb.operandCount.upperBound].display
            throw Self.usage("`\(surplus)` is one argument too many", verb)
        }
        if operands.contains(where: \.isEmpty) {
            throw Self.usage("an argument is empty; is a variable of your script not set?", verb)
        }
    }

    private static func value(
        of option: Option, given: FilePath?, _ rest: inout ArraySlice<FilePath>, _ verb: Verb
    ) throws(CommandError) -> FilePath {
        guard option.value != nil else {
            if given == nil { return "" }
            throw usage("--\(option.name) takes no value", verb)
        }
        guard let value = given ?? rest.popFirst(), !value.isEmpty else {
            throw usage("--\(option.name) needs a value: \(option.written)", verb)
        }
        return value
    }

    private static func unknown(_ written: String, _ verb: Verb) -> CommandError {
        let names = verb.options.map { "--" + $0.name }
        let near = closest(to: written, among: names)
        return usage("no option `\(printable(written))`" + (near.map { "; did you mean `\($0)`?" } ?? ""), verb)
    }

    static func usage(_ problem: String, _ verb: Verb) -> CommandError {
        CommandError(.usage, "sluice \(verb.name): \(problem)", remedy: "See `sluice \(verb.name) --help`.")
    }
}

extension FilePath {
    /// As text, with invalid UTF-8 replaced: for options and words of ours, never for names of files.
    var lossyText: String { String(decoding: bytes, as: UTF8.self) }
}
