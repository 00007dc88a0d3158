internal import Core

extension EffectivePieces {
    func hooks(_ hooks: [Hook]) -> Fields {
        hooks.isEmpty ? [] : [("hooks", .items(hooks.map { ($0.name, hook($0)) }))]
    }

    private func hook(_ hook: Hook) -> EffectivePiece {
        var fields = values([
            ("name", .text(hook.name)), ("on", .texts(hook.on)),
            ("folders", hook.folders.isEmpty ? nil : .texts(hook.folders)),
            ("destinations", hook.destinations.isEmpty ? nil : .texts(hook.destinations)),
        ])
        switch hook.target {
        case .command(let words): fields.append(("command", command(words)))
        case .web(let web):
            fields.append(("url", address(web)))
            if !web.headers.isEmpty { fields.append(("headers", headers(web.headers))) }
            if let secret = web.secret { fields.append(("secret", self.secret(secret))) }
            fields += values([("network", .plain(web.network.rawValue))])
        }
        fields += values([("timeout", .time(hook.timeout))])
        fields.append(("retry", retry(hook.retry, otherwise: "default")))
        fields += values([("give_up_after", .time(hook.giveUpAfter))])
        return .mapping(fields, known: Section.hook.keys)
    }

    /// Who knows the path may often do all that the hook may.
    private func address(_ web: WebHook) -> EffectivePiece {
        if !hides || web.url == web.shown || web.url == web.shown + "/" { return .value(.text(web.url)) }
        return .value(.text(web.shown + "/" + Self.hidden), note: "its path is not shown")
    }
}
