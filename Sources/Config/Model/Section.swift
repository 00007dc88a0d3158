/// The keys of one mapping in the file. The tables below are the whole language except the keys of destination types.
///
/// `docs/configuration.md` has the same keys; a test compares the two.
struct Section: Sendable {
    /// Its path: `folders[].settle`; empty for the top of the file.
    let path: String
    let keys: [String]
    /// Keys that belong to it and that this version does not support yet.
    var later: [String] = []
    /// Keys that belong elsewhere or have another name, with the message for a person who writes them here.
    var elsewhere: [String: String] = [:]

    static let root = Section(
        path: "",
        keys: [
            "version", "state", "staging", "folders", "destinations", "policy", "control", "metrics", "retention",
            "hooks",
        ],
        later: ["notify", "mqtt", "mail", "log"],
        elsewhere: ["webhooks": "an address that receives events is a hook with a `url`, under `hooks`"])
    static let addition = Section(
        path: "", keys: ["folders", "destinations"],
        elsewhere: Dictionary(
            uniqueKeysWithValues: root.keys.filter { $0 != "folders" && $0 != "destinations" }.map {
                ($0, "`\($0)` may only stand in the main file; files in config.d add `folders` and `destinations`")
            }))
    static let staging = Section(path: "staging", keys: ["path", "copy", "max_size", "keep_free", "concurrency"])
    static let folder = Section(
        path: "folders[]",
        keys: [
            "name", "path", "recursive", "include", "exclude", "settle", "existing", "empty", "duplicates",
            "upload_to", "after_upload", "priority", "remote_name", "metadata", "key", "context", "concurrency",
            "retry", "order", "group", "require", "watch", "min_size", "max_size", "min_age", "max_age", "staging",
            "export",
            "removable", "before_upload", "release_unsure",
        ] + rules,
        later: laterPolicy,
        elsewhere: [
            "quiet_for": "`quiet_for` belongs under `settle`", "to": "`to` belongs under `after_upload`",
            "marker": "a file that the folder must have is `require: {file: NAME}`; one beside each finished file is "
                + "`settle: {marker: \"{name}.done\"}`",
            "mount": "`mount` belongs under `require`", "policy": ownRules,
        ])
    static let settle = Section(
        path: "folders[].settle",
        keys: ["quiet_for", "writers", "marker", "report_after", "container", "broken", "broken_after"])
    static let require = Section(path: "folders[].require", keys: ["file", "mount"])
    static let afterUpload = Section(path: "folders[].after_upload", keys: ["source", "to", "for", "until_free"])
    static let group = Section(path: "folders[].group", keys: ["by", "wait", "sidecars"])
    static let folderStaging = Section(path: "folders[].staging", keys: ["copy"])
    static let export = Section(path: "folders[].export", keys: ["command", "output", "timeout", "min_size"])
    static let folderRetry = Section(path: "folders[].retry", keys: uploadRetryKeys)
    /// Keys of every destination, for all types.
    static let destination = Section(
        path: "destinations.*", keys: ["type", "concurrency", "retry", "order", "before_upload"] + rules,
        later: ["taken"] + laterPolicy, elsewhere: ["policy": ownRules])
    static let destinationRetry = Section(path: "destinations.*.retry", keys: uploadRetryKeys)
    private static let ownRules =
        "its own rules belong beside its other keys, without `policy`: `windows`, `bandwidth`, `quotas` …"
    static let policy = Section(
        path: "policy", keys: ["concurrency", "order", "retry", "before_upload"] + rules, later: laterPolicy)
    /// An item of any `windows`.
    static let window = Section(path: "windows[]", keys: ["between", "except"])
    /// An item of any `bandwidth`.
    static let rate = Section(path: "bandwidth[]", keys: ["limit", "between", "except"])
    /// For any `metered`.
    static let metered = Section(path: "metered", keys: ["limit"])
    /// An item of any `networks`.
    static let network = Section(
        path: "networks[]", keys: ["interface", "ssid", "gateway", "subnet", "roaming", "metered", "allowed"])
    /// An item of any `quotas`.
    static let quota = Section(
        path: "quotas[]", keys: ["per", "starts_on", "bytes", "files", "network", "direction"],
        elsewhere: [
            "between": "a quota counts whole hours, days, weeks or months; times of the day belong under `windows`",
            "limit": "a quota has `bytes`, `files` or both; a rate belongs under `bandwidth`",
        ])
    /// For any `busy`.
    static let busy = Section(path: "busy", keys: ["file", "command", "every", "timeout"])
    /// For any `before_upload`.
    static let beforeUpload = Section(path: "before_upload", keys: ["command", "timeout"])
    static let concurrency = Section(path: "policy.concurrency", keys: ["total", "per_destination"])
    static let retry = Section(path: "policy.retry", keys: uploadRetryKeys)
    static let control = Section(
        path: "control", keys: ["socket", "listen", "token", "hosts", "trusted_proxies", "certificate", "key"],
        later: ["web"],
        elsewhere: ["tls": "TLS needs the PEM files `certificate` and `key`", "port": "the port belongs in `listen`"])
    static let metrics = Section(path: "metrics", keys: ["textfile", "status_file", "every"])
    static let retention = Section(
        path: "retention", keys: ["completed", "failed", "cancelled", "history"],
        elsewhere: ["source": "what happens to a source is set in its folder, under `after_upload`"])
    static let hook = Section(
        path: "hooks[]",
        keys: [
            "name", "on", "folders", "destinations", "command", "url", "headers", "secret", "ca_file", "network",
            "timeout", "retry", "give_up_after",
        ])
    static let hookRetry = Section(path: "hooks[].retry", keys: retryKeys)
    static let secret = Section(
        path: "SECRET", keys: ["file", "env", "credential", "command", "literal"])

    private static let retryKeys = ["first", "max", "attempts"]
    private static let uploadRetryKeys = retryKeys + ["give_up_after"]
    /// Keys of `policy`, each destination and each folder.
    private static let rules = [
        "windows", "bandwidth", "metered", "metered_unknown", "networks", "quotas", "expires_after", "on_battery",
        "min_battery", "busy",
    ]
    private static let laterPolicy = ["limit", "power"]

    static let all: [Section] = [
        root, staging, folder, settle, require, afterUpload, group, folderStaging, export, folderRetry, destination,
        destinationRetry, policy, concurrency, window, rate, metered, network, quota, busy, retry, control, metrics,
        retention, hook, hookRetry, beforeUpload, secret,
    ]

    /// The message for a key that the section does not have.
    func objection(to key: String) -> String {
        if later.contains(key) { return "`\(key)` is not supported by this version" }
        if let text = elsewhere[key] { return text }
        return "no setting is called \(quoted(key)) here"
            + suggestion(for: key, among: keys, else: "allowed here: \(keys.joined(separator: ", "))")
    }
}
