internal import Core

extension Hook {
    static let keys: [Key<Self>] =
        [
            Key("name", \.name, .name),
            Key("on", \.on, { $0.types($1) }, { types, _ in .value(types.map(\.rawValue).inFile) })
                .takes(.list(.word(EventType.forHooks.map(\.rawValue)))),
            Key("folders", unlessEmpty: \.folders) { $0.names($1, "folders", "folder", $0.folderNames) }
                .takes(.list(.name)),
            Key("destinations", unlessEmpty: \.destinations) {
                $0.names($1, "destinations", "destination", $0.destinationNames)
            }.takes(.list(.name)),
            Key("command", of: \.command) { $1.command($0) }.takes(.program),
            Key("url", of: \.web?.url) { $1.address($0) }.takes(.url),
            Key("headers", of: { $0.web?.headers ?? [:] }) { $0.isEmpty ? nil : $1.headers($0) }
                .takes(.map(.textOrSecret)),
            Key("secret", of: \.web?.secret) { $1.secret($0) }.takes(.secret),
            Key("ca_file", of: { $0.web?.caFile }).takes(.path),
            Key("network", of: { $0.network }) { word, _ in .value(.plain(word.rawValue)) }
                .takes(.word(HookNetwork.allCases.map(\.rawValue))),
        ]
        + ProgramServers.keys(\.servers) + [
            Key("timeout", \.timeout, .duration(.milliseconds(100) ... .seconds(600))),
            Key(
                "retry", \.retry, { $0.retry($1, .hookRetry, Backoff.keys, otherwise: Hook.defaultBackoff) },
                section(.hookRetry, Backoff.keys)
            ).takes(.section("hooks[].retry")),
            Key("give_up_after", \.giveUpAfter, .duration(.seconds(1) ... .seconds(30 * 86_400))),
        ]

    private var command: [String]? { if case .command(let command) = target { command.words } else { nil } }
    private var servers: ProgramServers? { if case .command(let command) = target { command.servers } else { nil } }
    private var web: WebHook? { if case .web(let web) = target { web } else { nil } }
}
