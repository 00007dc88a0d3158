internal import Core

/// Reads `control`: how other programs reach the daemon.
struct ControlReading {
    let findings: ProblemCollector
    let disk: Disk
    let secrets: SecretReading

    /// - Parameter socket: The default.
    func control(_ fields: MappingReader, socket usual: FilePath) -> ControlSettings {
        let socket = fields.read("socket", as: .path)?.value ?? usual
        // sockaddr_un of unix(7): 108 bytes with the NUL.
        if socket.bytes.count > 107 {
            fields.error("is longer than the 107 bytes that Linux allows for a socket", "socket")
        }
        return ControlSettings(
            socket: socket, remote: remote(fields), thumbnails: fields.read("thumbnails", as: .flag)?.value ?? true)
    }

    private func remote(_ fields: MappingReader) -> RemoteControlSettings? {
        let files = tlsFiles(fields)
        let hosts = fields.list("hosts", as: .controlHost)?.map(\.value) ?? []
        let proxies = fields.list("trusted_proxies", as: .proxy)?.map(\.value) ?? []
        let tokens = tokens(fields)
        let servesPage = fields.read("web", as: .flag)?.value ?? true
        let plain = fields.read("insecure_http", as: .flag)
        guard fields.has("listen") else {
            for key in Section.control.keys where key != "socket" && key != "thumbnails" && fields.has(key) {
                fields.error("has no effect without `listen`", key)
            }
            return nil
        }
        fields.require(
            "tokens", "the API on TCP needs a token: \(Self.example)")
        guard let listen = fields.read("listen", as: .listenAddress)?.value else { return nil }
        if !listen.isLoopback, !fields.has("tls") {
            if plain?.value == true {
                fields.warning(
                    "others on the network can read the tokens and all file names; add `tls`, or listen on 127.0.0.1 "
                        + "behind a proxy that has a certificate", "insecure_http")
            } else if plain != nil || !fields.has("insecure_http") {
                fields.error(
                    "others on the network could read the tokens: add `tls: {certificate: …, key: …}`, listen on 127.0.0.1 "
                        + "behind a proxy that has a certificate, or permit it with `insecure_http: true`", "listen")
            }
        } else if plain?.value == true {
            fields.warning(
                "has no effect: " + (fields.has("tls") ? "there is `tls`" : "\(listen) is only for this machine"),
                "insecure_http")
        }
        guard let tokens else { return nil }
        return RemoteControlSettings(
            listen: listen, tokens: tokens, hosts: hosts, trustedProxies: proxies, tls: files, servesPage: servesPage,
            allowsPlainHTTP: plain?.value ?? false)
    }

    private static let example = "`tokens: [{name: me, secret: {file: /etc/sluice/control.token}}]`"

    private func tokens(_ fields: MappingReader) -> [ControlToken]? {
        guard let items = fields.items("tokens", expected: "a list of tokens, like \(Self.example)") else { return nil }
        if items.isEmpty { fields.error("is empty; write \(Self.example)", "tokens") }
        var taken: [String: ConfigLocation] = [:]
        var tokens: [ControlToken] = []
        for (index, node) in items.enumerated() {
            let item = MappingReader(
                node, .controlToken, path: "control.tokens[\(index)]", start: node.start, findings: findings)
            guard case .mapping = node.content else { continue }
            item.require("name", "it says in the log who did something, like `name: me`")
            item.require("secret", "like `secret: {file: /etc/sluice/control.token}`")
            let name = item.read("name", as: .name)?.value
            let role = item.read("role", as: .choice)?.value ?? ControlRole.operate
            let secret = item.node("secret").flatMap { secrets.secret($0, key: item.path(of: "secret")) }
            if let name, let earlier = taken.updateValue(item.place(of: "name"), forKey: name) {
                item.error("another token is called \(quoted(name)), at \(findings.name(of: earlier))", "name")
            }
            if let name, let secret { tokens.append(ControlToken(name: name, role: role, secret: secret)) }
        }
        return tokens.isEmpty ? nil : tokens
    }

    private func tlsFiles(_ main: MappingReader) -> RemoteControlSettings.TLSFiles? {
        guard main.has("tls") else { return nil }
        let fields = main.fields("tls", .controlTLS)
        for key in ["certificate", "key"] { fields.require(key, "TLS needs both, as PEM files") }
        guard let chain = fields.read("certificate", as: .path), let key = fields.read("key", as: .path) else {
            return nil
        }
        for (name, path) in [("certificate", chain.value), ("key", key.value)] {
            if let trouble = disk.troubleReading(path) { fields.error(trouble, name) }
        }
        if let mode = disk.openMode(key.value, to: .others) {
            fields.warning(
                "every user of this machine can read `\(key.value.display)` (mode \(mode)); chmod it to 0600 or 0640",
                "key")
        }
        return .init(chain: chain.value, key: key.value)
    }
}

extension Reader where Value == ListenAddress {
    fileprivate static var listenAddress: Reader {
        let expected = "an address and a port, like `127.0.0.1:8484` or `:8484`"
        return Reader(expected: expected, isText: true) { text throws(ValueError) in
            do throws(ListenAddress.ParseError) { return try ListenAddress(text) } catch {
                guard let problem = error.text else { throw .plain }
                throw ValueError(problem)
            }
        }
    }
}

extension Reader where Value == IPSubnet {
    fileprivate static var proxy: Reader {
        Reader(expected: "an address or a network, like `127.0.0.1` or `10.0.0.0/8`", isText: true) {
            text throws(ValueError) in
            guard let subnet = IPSubnet(text) else { throw .plain }
            if subnet.network != subnet {
                throw ValueError("\(quoted(text)) has host bits set; the network is `\(subnet.network)`")
            }
            return subnet
        }
    }
}

extension Reader where Value == String {
    /// A name (RFC 1123, section 2.1) or an address.
    fileprivate static var controlHost: Reader {
        Reader(expected: "a name like `nas.example` or an address, without port", isText: true) {
            text throws(ValueError) in
            if let address = IPAddress(text) { return address.description }
            let name = comparableHostName(text)
            let labels = name.split(separator: ".", omittingEmptySubsequences: false)
            let isName = labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
            }
            guard isName, name.utf8.count <= 253 else { throw .plain }
            return name
        }
    }
}
