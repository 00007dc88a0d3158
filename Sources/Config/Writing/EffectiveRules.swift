internal import Core

// Keys that `policy`, a destination and a folder have in common.

extension EffectivePieces {
    func rules(_ rules: PolicyRules) -> [(String, WrittenValue?)] {
        func list(_ items: [WrittenValue]) -> WrittenValue? { items.isEmpty ? nil : .list(items) }
        return [
            ("windows", list(rules.windows.map(window))),
            (
                "bandwidth",
                list(
                    rules.bandwidth.map { rule in
                        .fields([("limit", .rate(rule.limit))] + (rule.window.map(times) ?? []))
                    })
            ),
            ("metered", rules.metered.map(metered)),
            ("metered_unknown", rules.meteredUnknown.map { .plain($0.rawValue) }),
            ("networks", list(rules.networks.map(network))), ("quotas", list(rules.quotas.map(quota))),
            ("expires_after", rules.expiresAfter.map { .time($0) }),
            ("on_battery", rules.onBattery.map { .plain($0.rawValue) }),
            ("min_battery", rules.minBattery.map { .plain("\($0)%") }), ("busy", rules.busy.map(busy)),
        ]
    }

    private func window(_ window: Window) -> WrittenValue {
        let fields = times(window)
        if fields.count == 1, let between = fields[0].value { return between }
        return .fields(fields)
    }

    private func times(_ window: Window) -> [(key: String, value: WrittenValue?)] {
        let except = window.except.sorted().map { WrittenValue.text("\($0)") }
        return [("between", .text(window.words))]
            + (except.isEmpty ? [] : [("except", .list(except))])
    }

    private func metered(_ rule: MeteredRule) -> WrittenValue {
        switch rule {
        case .allow: .plain("allow")
        case .pause: .plain("pause")
        case .limit(let rate): .fields([("limit", .rate(rate))])
        }
    }

    private func network(_ rule: NetworkRule) -> WrittenValue {
        .fields([
            ("interface", rule.interface.map { .text($0) }), ("ssid", rule.ssid.map { .text($0) }),
            ("gateway", rule.gateway.map { .text("\($0)") }), ("subnet", rule.subnet.map { .text("\($0)") }),
            ("roaming", rule.isRoaming.map { .flag($0) }), ("metered", rule.isMetered.map { .flag($0) }),
            ("allowed", rule.isAllowed.map { .flag($0) }),
        ])
    }

    private func quota(_ quota: Quota) -> WrittenValue {
        var fields: [(key: String, value: WrittenValue?)] =
            switch quota.period {
            case .hour: [("per", .plain("hour"))]
            case .day: [("per", .plain("day"))]
            case .week(let first): [("per", .plain("week")), ("starts_on", .plain(first.rawValue))]
            case .month(let first): [("per", .plain("month")), ("starts_on", .number(Int64(first)))]
            }
        fields += [
            ("bytes", quota.bytes.map { .bytes($0) }), ("files", quota.files.map { .number($0) }),
            ("network", .plain(quota.network.rawValue)),
            ("direction", quota.bytes.map { _ in .plain(quota.direction.rawValue) }),
        ]
        return .fields(fields)
    }

    private func busy(_ rule: BusyRule) -> WrittenValue {
        switch rule.source {
        case .file(let path): .fields([("file", .path(path))])
        case .command(let words):
            .fields([
                ("command", .texts(shown(words))), ("every", .time(rule.every)),
                ("timeout", .time(rule.timeout)),
            ])
        }
    }
}
