internal import Core

/// An export while its keys are read: neither a command nor the name of an output can be empty.
struct ExportDraft {
    private var command: CommandWords?
    private var output: Template?
    private var timeout: Duration = .seconds(86_400)
    private var minSize: Int64 = 1
    fileprivate var servers: ProgramServers?

    static let keys: [Key<Self>] =
        [

            Key("command", optional: \.command, { $0.command($1) }, { $1.command($0.source) })
                .takes(.list(.text)),
            Key("output", \.output, .relativeName(mayHaveFolders: false)),
            Key("timeout", \.timeout, .duration(.seconds(1) ... .seconds(7 * 86_400))),
            Key("network", of: { $0.servers == nil ? HookNetwork.any : .policy }) { word, _ in
                .value(.plain(word.rawValue))
            }.takes(.word(HookNetwork.allCases.map(\.rawValue))),
        ] + ProgramServers.keys(\.servers) + [
            Key("min_size", \.minSize, .bytes)
        ]

    init() {}

    init(_ export: ExportSettings) {
        (command, output, timeout, minSize) = (export.command, export.output, export.timeout, export.minSize)
        servers = export.servers
    }

    /// `nil` without a command or an output.
    var settings: ExportSettings? {
        guard let command, let output else { return nil }
        return ExportSettings(
            command: command, output: output, timeout: timeout, minSize: max(1, minSize), servers: servers)
    }
}

/// Reads `folders[].export`.
extension SettingsReading {
    func export(_ folder: MappingReader) -> ExportSettings? {
        guard folder.has("export") else { return nil }
        let fields = folder.fields("export", .export)
        fields.require("command", "name the program and its arguments, like `[ffmpeg, -i, \"{input}\", \"{output}\"]`")
        fields.require("output", "name its output file, like `output: \"{stem}.mp4\"`")
        var draft = ExportDraft()
        ExportDraft.keys.read(fields, into: &draft, self)
        draft.servers = ProgramServers(reading: fields)
        return draft.settings
    }

    fileprivate func command(_ fields: MappingReader) -> CommandWords? {
        guard let words = fields.list("command", as: .text) else { return nil }
        guard let program = words.first else {
            if case .list(let items)? = fields.node("command")?.content, items.isEmpty {
                fields.error("names no program", "command")
            }
            return nil
        }
        do throws(CommandWords.SyntaxError) {
            let command = try CommandWords(words.map(\.value))
            warnIfMissing(program.value, fields, at: program.place)
            return command
        } catch {
            fields.error(
                error.problem, "command", at: words.indices.contains(error.word) ? words[error.word].place : nil)
            return nil
        }
    }

    /// A warning: the files wait until the program exists.
    private func warnIfMissing(_ program: String, _ fields: MappingReader, at place: ConfigLocation) {
        if program.hasPrefix("/") {
            if let trouble = disk.troubleRunning(FilePath(program)) { fields.warning(trouble, "command", at: place) }
        } else if program.contains("/") {
            fields.error("takes a program by its absolute path, or by its name alone", "command", at: place)
        } else if disk.checks == .checked {
            let folders = (environment("PATH") ?? "").split(separator: ":").map { FilePath(String($0)) }
            let isThere = folders.contains { disk.troubleRunning($0.appending(FilePath(program))) == nil }
            if !isThere {
                fields.warning(
                    "no program `\(program)` is in the PATH of this shell; files of the folder wait until there is one",
                    "command", at: place)
            }
        }
    }
}
