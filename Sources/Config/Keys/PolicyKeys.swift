internal import Core

// Keys of `policy`, and those that each destination and each folder may set for itself.

extension PolicySettings {
    static let keys: [Key<Self>] =
        [
            concurrencyKey,
            Key("order", \.order),
            Key("retry", \.retry, { $0.retry($1, .retry, Backoff.uploadKeys) }, section(.retry, Backoff.uploadKeys))
                .takes(.section("policy.retry")),
            Key(
                "before_upload", optional: \.beforeUpload, { $0.beforeUpload($1) },
                section(.beforeUpload, BeforeUpload.keys)
            ).takes(.section("before_upload")),
        ] + PolicyRules.keys.map { $0.of(\.rules) }
}

extension PolicyOverrides {
    static let throughputKeys: [Key<Self>] = [
        concurrencyKey,
        Key(
            "retry", optional: \.retry, { $0.retry($1, .retry, Backoff.uploadKeys, otherwise: $0.policy.retry) },
            section(.retry, Backoff.uploadKeys, otherwise: "as policy.retry")
        ).takes(.section("policy.retry")).printed(after: "concurrency"),
        Key("order", \.order).printed(after: "concurrency"),
    ]
    static let beforeUploadKey: Key<Self> = Key(
        "before_upload", optional: \.beforeUpload, { $0.beforeUpload($1) },
        section(.beforeUpload, BeforeUpload.keys)
    ).takes(.section("before_upload"))
    /// For a type of destination that gets no requests.
    static func refuseRequestKeys(_ fields: MappingReader, _ type: String) {
        for key in requestKeys.map(\.name) where fields.has(key) {
            fields.error("is about requests, and files are copied to a `\(type)` without any; take it out", key)
        }
    }

    /// Of a destination that gets requests.
    private static let requestKeys: [Key<Self>] = [
        Key("requests", \.requests, .requestRate) { .plain($0.written) },
        Key("dscp", \.trafficClass, .trafficClass) { .plain($0.written) },
    ]
    /// The keys of a destination.
    static let destinationKeys: [Key<Self>] =
        throughputKeys + [beforeUploadKey] + requestKeys + PolicyRules.keys.map { $0.of(\.rules) }
}

extension BeforeUpload {
    static let keys: [Key<Self>] = [
        Key(
            "command", \.command,
            { $0.program($1, example: "/usr/local/bin/may-go", meanwhile: "until then uploads wait") },
            { $1.command($0) }
        ).takes(.program),
        Key("timeout", \.timeout, .duration(.milliseconds(100) ... .seconds(600))),
    ]
}

extension PolicyRules {
    static let keys: [Key<Self>] = [
        Key(
            "windows", optional: \.windowRule, { WindowReading($1, $0).rule },
            { rule, _ in .value(rule.windows.inFile) }
        )
        .takes(.list(.either([.window, .section("windows[]")]))),
        Key("bandwidth", unlessEmpty: \.bandwidth) { $0.bandwidth($1, in: $1.section) }
            .takes(.either([.rate, .list(.either([.rate, .section("bandwidth[]")]))])),
        Key("pause", unlessEmpty: \.pauses) { ConditionReading($0, in: $1.section).pauses($1) }.takes(
            .list(.section("pause[]"))),
        Key(
            "metered", optional: \.meteredRule, { $0.meteredRule($1) },
            { _, _ in .value(.plain(MeteredRule.pause.rawValue)) }
        )
        .takes(.word(MeteredRule.allCases.map(\.rawValue))),
        Key("metered_unknown", \.meteredUnknown),
        Key("networks", unlessEmpty: \.networks) { $0.networks($1) }.takes(.list(.section("networks[]"))),
        Key("quotas", unlessEmpty: \.quotas) { $0.quotas($1, in: $1.section) }.takes(.list(.section("quotas[]"))),
        Key("expires_after", \.expiresAfter, .duration(.seconds(60) ... .seconds(10 * 366 * 86_400))),
        Key("busy", optional: \.busy, { $0.busy($1) }) { rule, pieces in
            .value(BusyRule.keys.inFile(of: rule, pieces))
        }.takes(.section("busy")),
    ]
}

extension Backoff {
    static let keys: [Key<Self>] = [
        Key("first", \.first, .duration(.milliseconds(100) ... .seconds(86_400))),
        Key("max", \.ceiling, .duration(.milliseconds(100) ... .seconds(7 * 86_400))),
        Key("attempts", \.attempts, .whole(1...1_000_000)),
    ]
    /// Notices have a key of their own for the end of repeated failures.
    static let uploadKeys: [Key<Self>] =
        keys + [Key("give_up_after", \.giveUpAfter, .duration(.seconds(60) ... .seconds(366 * 86_400)))]
}
