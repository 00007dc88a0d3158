internal import Core

/// The keys of one mapping in the file. The list below is the whole language except the keys of destination types.
///
/// `docs/configuration.md` has the same keys; a test compares the two.
struct Section: Sendable {
    /// Its path: `folders[].settle`; empty for the top of the file.
    let path: String
    let keys: [String]
    /// Keys that belong to it and that this version does not support yet.
    var futureKeys: [String] = []
    /// Keys that belong elsewhere or have another name, with the message for a person who writes them here.
    var elsewhere: [String: String] = [:]
    /// It has rules of policy among its keys.
    var hasPolicy = false
    /// The form of the value of each key.
    var kinds: [String: ValueKind] = [:]
    /// Keys of which exactly one is set.
    var exactlyOneOf: [String] = []
    /// Keys of which at least one is set.
    var someOf: [String] = []

    static let root = Section(
        path: "",
        keys: [
            "version", "state", "staging", "folders", "destinations", "policy", "control", "metrics", "retention",
            "hooks",
        ],
        futureKeys: ["notify", "mqtt", "mail", "log"],
        elsewhere: ["webhooks": "an address that receives events is a hook with a `url`, under `hooks`"],
        kinds: [
            "version": .whole(1...1), "state": .path, "staging": .section("staging"),
            "folders": .list(.section("folders[]")), "destinations": .map(.section("destinations.*")),
            "policy": .section("policy"), "control": .section("control"), "metrics": .section("metrics"),
            "retention": .section("retention"), "hooks": .list(.section("hooks[]")),
        ])
    static let addition = Section(
        path: "", keys: ["folders", "destinations"],
        elsewhere: Dictionary(
            uniqueKeysWithValues: root.keys.filter { $0 != "folders" && $0 != "destinations" }.map {
                ($0, "`\($0)` may only stand in the main file; files in config.d add `folders` and `destinations`")
            }))
    static let staging = Section(path: "staging", StagingSettings.keys)
    static let folder = Section(
        path: "folders[]", FolderSettings.keys,
        futureKeys: laterPolicy,
        elsewhere: [
            "quiet_for": "`quiet_for` belongs under `settle`", "to": "`to` belongs under `after_upload`",
            "marker": "a file that the folder must have is `require: {file: NAME}`; one beside each finished file is "
                + "`settle: {marker: \"{name}.done\"}`",
            "mount": "`mount` belongs under `require`", "policy": ownRules,
        ], hasPolicy: true)
    static let settle = Section(path: "folders[].settle", FolderSettings.settleKeys + FolderSettings.brokenKeys)
    static let require = Section(path: "folders[].require", FolderSettings.requireKeys)
    static let afterUpload = Section(path: "folders[].after_upload", FolderSettings.afterUploadKeys)
    static let group = Section(path: "folders[].group", GroupRule.keys)
    static let folderStaging = Section(path: "folders[].staging", FolderSettings.stagingKeys)
    static let export = Section(path: "folders[].export", ExportDraft.keys)
    static let folderRetry = Section(path: "folders[].retry", Backoff.uploadKeys)
    /// Keys of every destination, for all types.
    static let destination = Section(
        path: "destinations.*", keys: ["type"] + PolicyOverrides.destinationKeys.map(\.name),
        futureKeys: ["taken"] + laterPolicy, elsewhere: ["policy": ownRules], hasPolicy: true,
        kinds: kinds(PolicyOverrides.destinationKeys))
    static let destinationRetry = Section(path: "destinations.*.retry", Backoff.uploadKeys)
    private static let ownRules =
        "its own rules belong beside its other keys, without `policy`: `windows`, `bandwidth`, `quotas` …"
    static let policy = Section(path: "policy", PolicySettings.keys, futureKeys: laterPolicy, hasPolicy: true)
    /// An item of any `windows`.
    static let window = Section(path: "windows[]", Window.keys)
    /// An item of any `bandwidth`.
    static let rate = Section(path: "bandwidth[]", RateRule.keys)
    /// An item of any `networks`.
    static let network = Section(path: "networks[]", NetworkRule.keys, someOf: ["metered", "allowed", "name"])
    /// An item of any `pause`.
    static let pause = Section(path: "pause[]", PauseRule.keys)
    /// A mapping of any condition.
    static let condition = Section(
        path: "when", ConditionDraft.keys,
        elsewhere: [
            "days": "the days belong into `between`, like `between: \"sat,sun 08:00-12:00\"`",
            "windows": "in a condition, the time is `between: \"22:00-06:00\"`",
        ])
    /// A mapping in `upload_to`.
    static let route = Section(path: "upload_to[]", UploadRoute.keys, exactlyOneOf: ["to", "first_of"])
    /// An item of any `quotas`.
    static let quota = Section(
        path: "quotas[]", Quota.keys,
        elsewhere: [
            "between": "a quota counts whole hours, days, weeks or months; times of the day belong under `windows`",
            "limit": "a quota has `bytes`, `files` or both; a rate belongs under `bandwidth`",
        ], someOf: ["bytes", "files"])
    /// For any `busy`.
    static let busy = Section(
        path: "busy", BusyRule.keys,
        elsewhere: [
            "when": "`busy` takes no condition: it holds everything while the machine is busy; a rule with "
                + "a condition belongs under `pause`"
        ], exactlyOneOf: ["file", "command"])
    /// For any `before_upload`.
    static let beforeUpload = Section(
        path: "before_upload", BeforeUpload.keys,
        elsewhere: [
            "when": "`before_upload` takes no condition: its program is asked about each upload, and may "
                + "answer `go` at once; a rule with a condition belongs under `pause`"
        ])
    static let concurrency = Section(path: "policy.concurrency", PolicySettings.Concurrency.keys)
    /// An item of any `concurrency`.
    static let slots = Section(path: "concurrency[]", ConcurrencyRule.Draft.keys)
    static let retry = Section(path: "policy.retry", Backoff.uploadKeys)
    static let control = Section(
        path: "control", ControlSettings.keys,
        elsewhere: [
            "token": "tokens are a list: `tokens: [{name: me, secret: {file: /etc/sluice/control.token}}]`",
            "certificate": "`certificate` belongs under `tls`", "key": "`key` belongs under `tls`",
            "port": "the port belongs in `listen`",
        ])
    static let controlToken = Section(path: "control.tokens[]", ControlToken.keys)
    static let controlTLS = Section(path: "control.tls", RemoteControlSettings.TLSFiles.keys)
    static let metrics = Section(path: "metrics", MetricsSettings.keys)
    static let retention = Section(
        path: "retention", ListRetention.keys,
        elsewhere: ["source": "what happens to a source is set in its folder, under `after_upload`"])
    static let hook = Section(path: "hooks[]", Hook.keys, exactlyOneOf: ["command", "url"])
    static let hookRetry = Section(path: "hooks[].retry", Backoff.keys)
    static let secret = Section(
        path: "SECRET", keys: SecretForm.allCases.map(\.rawValue) + ["network", "ports", "hosts"],
        kinds: [
            "file": .path, "env": .text, "credential": .name, "command": .program, "literal": .text,
            "network": .word(HookNetwork.allCases.map(\.rawValue)), "ports": .list(.whole(1...65_535)),
            "hosts": .list(.host),
        ],
        exactlyOneOf: SecretForm.allCases.map(\.rawValue))

    private static let laterPolicy = ["limit", "power"]

    static let all: [Section] = [
        root, staging, folder, settle, require, afterUpload, group, folderStaging, export, folderRetry, destination,
        destinationRetry, policy, concurrency, slots, window, rate, pause, condition, route, network, quota, busy,
        retry,
        control, controlToken, controlTLS, metrics,
        retention, hook, hookRetry, beforeUpload, secret,
    ]

    /// The message for a key that the section does not have.
    func objection(to key: String, _ value: Node) -> String {
        if hasPolicy, let text = ReplacedKeys.objection(to: key, value) { return text }
        if futureKeys.contains(key) { return "`\(key)` is not supported by this version" }
        if let text = elsewhere[key] { return text }
        return "no setting is called \(quoted(key)) here"
            + suggestion(for: key, among: keys, else: "allowed here: \(keys.joined(separator: ", "))")
    }

    /// The same for a key that no message may repeat: it may be a text at the place of a key.
    func objection(toHidden key: String) -> String {
        if let name = keys.first(where: { key.hasPrefix($0 + ":") }) { return "needs a blank after `\(name):`" }
        if let name = keys.first(where: { key.hasPrefix($0 + " ") }) { return "needs a colon after `\(name)`" }
        return "has a key that is not allowed here, and is not shown, since it may be a secret; allowed: "
            + keys.joined(separator: ", ") + ". A text with a comma or a colon needs quotes"
    }
}

extension Section {
    /// A section whose keys a table declares.
    init<Owner>(
        path: String, _ table: [Key<Owner>], futureKeys: [String] = [], elsewhere: [String: String] = [:],
        hasPolicy: Bool = false, exactlyOneOf: [String] = [], someOf: [String] = []
    ) {
        self.init(
            path: path, keys: table.map(\.name), futureKeys: futureKeys, elsewhere: elsewhere,
            hasPolicy: hasPolicy, kinds: Self.kinds(table), exactlyOneOf: exactlyOneOf, someOf: someOf)
    }

    private static func kinds<Owner>(_ table: [Key<Owner>]) -> [String: ValueKind] {
        var kinds: [String: ValueKind] = [:]
        for key in table { kinds[key.name] = key.kind }
        return kinds
    }
}
