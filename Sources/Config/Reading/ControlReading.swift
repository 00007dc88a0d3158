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
        return ControlSettings(socket: socket, remote: remote(fields))
    }

    private func remote(_ fields: MappingReader) -> RemoteControlSettings? {
        let certificate = certificate(fields)
        let hosts = fields.list("hosts", as: .hostName)?.map(\.value) ?? []
        let proxies = fields.list("trusted_proxies", as: .proxy)?.map(\.value) ?? []
        let token = fields.node("token").flatMap {
            secrets.secret($0, key: fields.path(of: "token"))
        }
        guard fields.has("listen") else {
            for key in Section.control.keys where key != "socket" && fields.has(key) {
                fields.error("has no effect without `listen`", key)
            }
            return nil
        }
        fields.require(
            "token", "the API on TCP needs a token: `token: {file: /etc/sluice/control.token}`")
        guard let listen = fields.read("listen", as: .listenAddress)?.value, let token else { return nil }
        if !listen.isLoopback, certificate == nil {
            fields.warning(
                "others on the network can read the token and all file names; add `certificate` and `key`, or listen on "
                    + "127.0.0.1 behind a proxy that has them", "listen")
        }
        return RemoteControlSettings(
            listen: listen, token: token, hosts: hosts, trustedProxies: proxies, certificate: certificate)
    }

    private func certificate(_ fields: MappingReader) -> RemoteControlSettings.TLSFiles? {
        for (key, other) in [("certificate", "key"), ("key", "certificate")] where fields.has(key) && !fields.has(other)
        {
            fields.error("goes with `\(other)`: both are PEM files", key)
        }
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
    /// RFC 1123, section 2.1.
    fileprivate static var hostName: Reader {
        Reader(expected: "a name like `nas.example`, without port", isText: true) { text throws(ValueError) in
            let labels = text.split(separator: ".", omittingEmptySubsequences: false)
            let isName = labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
            }
            guard isName, text.utf8.count <= 253 else { throw .plain }
            return text.lowercased()
        }
    }
}
