internal import Core
internal import Credentials
internal import Transport

// What a person sets of whoever signs.

extension S3Presigner {
    /// Lower-case. Set twice, they would break the framing.
    private static let reserved: Set<String> = [
        "content-type", "content-length", "transfer-encoding", "expect", "host", "connection", "accept",
    ]

    static func signer(_ values: [String: SettingValue]) -> Signer? {
        if case .texts(let words)? = values["presign.command"] { return .command(words) }
        guard case .text(let url)? = values["presign.url"] else { return nil }
        var headers: [CredentialProvider.Header] = []
        if case .secret(let source)? = values["presign.token"] {
            headers.append(.init("Authorization", prefix: "Bearer ", source))
        }
        if case .map(let map)? = values["presign.headers"] {
            headers += map.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) }
        }
        var caFile: FilePath?
        if case .path(let path)? = values["presign.ca_file"] { caFile = path }
        return .service(url: url, headers: headers, caFile: caFile)
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        guard values.keys.contains(where: { $0.hasPrefix("presign.") }) else { return [] }
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        if case .texts(let words)? = values["presign.command"] {
            if words.first?.hasPrefix("/") != true {
                object(
                    "presign.command",
                    "takes a program by its absolute path, and its arguments; no shell looks for it")
            }
            for key in ["url", "token", "headers", "ca_file"] where values["presign.\(key)"] != nil {
                object("presign.\(key)", "is for a service, and `command` is asked; take one of them out")
            }
        } else if values["presign.url"] == nil {
            all.append(
                SettingObjection(
                    key: "presign", problem: "does not say who signs: set `url` or `command`",
                    missing: ["presign.url", "presign.command"]))
        }
        if case .map(let map)? = values["presign.headers"] {
            for name in map.keys.sorted() {
                if reserved.contains(name.lowercased()) {
                    object("presign.headers.\(name)", "cannot be set: it belongs to the protocol")
                }
                if name.lowercased() == "authorization", values["presign.token"] != nil {
                    object("presign.headers.\(name)", "is what `token` sets; take one of them out")
                }
            }
        }
        if case .texts(let hosts)? = values["presign.hosts"] {
            for host in hosts
            where WebAddress("https://\(host)").authority != host || host.isEmpty || host.contains("@") {
                object("presign.hosts", "takes hosts, like `s3.amazonaws.com` or `nas.example:9000`, not `\(host)`")
            }
        }
        return all
    }
}
