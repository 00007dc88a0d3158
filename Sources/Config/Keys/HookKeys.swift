internal import Core

extension Hook {
    static let keys: [Key<Self>] = [
        Key("name", \.name, .name),
        Key("on", \.on, { $0.types($1) }, { types, _ in .value(types.map(\.rawValue).inFile) }),
        Key("folders", unlessEmpty: \.folders) { $0.names($1, "folders", "folder", $0.folderNames) },
        Key("destinations", unlessEmpty: \.destinations) {
            $0.names($1, "destinations", "destination", $0.destinationNames)
        },
        Key("command", of: \.command) { $1.command($0) }, Key("url", of: \.web?.url) { $1.address($0) },
        Key("headers", of: { $0.web?.headers ?? [:] }) { $0.isEmpty ? nil : $1.headers($0) },
        Key("secret", of: \.web?.secret) { $1.secret($0) },
        Key("ca_file", of: { $0.web?.caFile }),
        Key("network", of: { $0.web?.network ?? .policy }) { word, _ in .value(.plain(word.rawValue)) }
            .printed { $0.web != nil },
        Key("timeout", \.timeout, .duration(.milliseconds(100) ... .seconds(600))),
        Key(
            "retry", \.retry, { $0.retry($1, .hookRetry, Backoff.keys, otherwise: Hook.defaultBackoff) },
            section(.hookRetry, Backoff.keys)),
        Key("give_up_after", \.giveUpAfter, .duration(.seconds(1) ... .seconds(30 * 86_400))),
    ]

    private var command: [String]? { if case .command(let words) = target { words } else { nil } }
    private var web: WebHook? { if case .web(let web) = target { web } else { nil } }
}
