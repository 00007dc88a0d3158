package import Core

/// The secrets of a configuration, to hide them wherever they appear.
package struct ConfiguredSecrets {
    package let sources: [SecretSource]
    /// Parts of addresses that give a right: values of queries, and the paths of hooks. And arguments of programs that may
    /// be passwords: a program that fails prints how it was called.
    package let texts: [String]

    package init(of settings: Settings) {
        let destinations = settings.destinations.flatMap { $0.values.values }
        let hooks = settings.hooks.compactMap { hook in
            if case .web(let web) = hook.target { web } else { nil }
        }
        let sources =
            destinations.flatMap(\.sources) + hooks.flatMap { $0.headers.values + ($0.secret.map { [$0] } ?? []) }
            + (settings.control.remote?.tokens.map(\.secret) ?? [])
        self.sources = sources.flatMap(\.leaves)
        texts =
            Self.commands(settings).flatMap { ShownCommand($0).secrets }
            + destinations.flatMap { $0.texts.flatMap(Self.queryValues) }
            + hooks.flatMap { Self.queryValues($0.url) + [String($0.url.dropFirst($0.shown.count))] }
    }

    private static func commands(_ settings: Settings) -> [[String]] {
        settings.beforeUploads.map(\.rule.command) + settings.allFolders.compactMap { $0.export?.command.source }
            + settings.hooks.compactMap { hook in
                if case .command(let command) = hook.target { command.words } else { nil }
            }
    }

    private static func queryValues(_ text: String) -> [String] {
        guard text.contains("://"), let mark = text.firstIndex(of: "?") else { return [] }
        return text[text.index(after: mark)...].split { $0 == "&" || $0 == "#" }.flatMap { pair in
            let value = String(pair.firstIndex(of: "=").map { pair[pair.index(after: $0)...] } ?? pair)
            // As the server may have read it.
            return [value] + [PercentCoding.text(decoding: value)].compactMap { $0 }
        }
    }
}

extension SettingValue {
    fileprivate var sources: [SecretSource] {
        switch self {
        case .secret(let source): [source]
        case .map(let map), .secrets(let map): Array(map.values)
        default: []
        }
    }

    fileprivate var texts: [String] {
        switch self {
        case .text(let text): [text]
        case .texts(let texts): texts
        default: []
        }
    }
}
