package import Core

/// How the requests of one destination connect, whatever their addresses are.
package struct ConnectionSettings: Hashable, Sendable {
    package enum LowestTLS: String, Hashable, Sendable, CaseIterable {
        case v1_2 = "TLSv1.2"
        case v1_3 = "TLSv1.3"
    }

    /// When HTTP/2 (RFC 9113) is used. Each transfer has a connection of its own nevertheless, so that its bytes can be
    /// counted and it can be aborted alone.
    package enum HTTP2: String, Hashable, Sendable, CaseIterable {
        case never
        /// Where the server chooses it (ALPN, RFC 7301), which needs TLS.
        case auto
        /// The same, and also without TLS, where the server is expected to speak it (RFC 9113, section 3.3).
        case always
    }

    package var proxy = ProxyChoice.environment(exempt: nil)
    /// For the proxy, by the scheme Basic or the method of SOCKS5; `nil` for those in its address.
    package var proxyUser: String?
    package var proxyPassword: String?
    /// Certificates that are trusted for a proxy that is reached with TLS.
    package var proxyCAFile: FilePath?
    /// Certificates that are trusted instead of the system's.
    package var caFile: FilePath?
    /// The certificate of this client (PEM), perhaps with its key.
    package var clientCertificate: FilePath?
    /// The key of that certificate, as PEM.
    package var clientKey: String?
    package var clientKeyPassword: String?
    /// Digests of the public keys that a server may have, in the form of RFC 7469 without quotes: `sha256//…`. Empty for
    /// any key.
    package var pinnedKeys: [String] = []
    package var lowestTLS = LowestTLS.v1_2
    package var http2 = HTTP2.never
    package var addressFamily = AddressFamily.any
    /// Addresses of hosts that are not looked up.
    package var fixedAddresses: [FixedAddress] = []
    /// `nil` for the program's own.
    package var userAgent: String?

    package init() {}
}

/// The addresses of a host at a port, in place of those that a lookup would find.
package struct FixedAddress: Hashable, Sendable {
    /// Lower-case, without a dot at its end.
    package var host: String
    package var port: UInt16
    package var addresses: [IPAddress]

    /// The name as it may stand in the address of a request: libcurl takes one with a dot at its end for another name.
    var spellings: [String] { IPAddress(host) == nil ? [host, host + "."] : [host] }

    /// Reads `HOST:PORT:ADDRESS[,ADDRESS]…`, as curl(1) does for `--resolve`. An IPv6 address may have brackets.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, let port = UInt16(parts[1]), port > 0 else { return nil }
        host = comparableHostName(parts[0])
        let read = WebAddress("http://\(host)/")
        guard read.isOfPlainHost, read.host == host else { return nil }
        self.port = port
        addresses = []
        for word in parts[2].split(separator: ",", omittingEmptySubsequences: false) {
            let bare = word.hasPrefix("[") && word.hasSuffix("]") ? word.dropFirst().dropLast() : word
            guard let address = IPAddress(String(bare)) else { return nil }
            addresses.append(address)
        }
    }
}

extension ConnectionSettings {
    /// The proxy for requests to `url`; `nil` for none.
    package func proxy(for url: WebAddress) -> ProxyServer? {
        guard var server = proxy.server(for: url) else { return nil }
        server.givenAddresses = addresses(of: server.host, port: server.port)
        return server
    }

    /// The first machine that requests to `url` are sent to: the server itself, or a proxy before it. For a proxy on this
    /// machine it is the server, because such a proxy connects from this machine.
    ///
    /// - Returns: `nil` where the address names no host.
    package func site(of url: WebAddress) -> DestinationSite? {
        if let proxy = proxy(for: url) {
            if !proxy.isHere { return site(of: proxy.host, port: proxy.port) }
            // Such a proxy connects to the server by any version of IP.
            return url.endpoint.map { .server(host: $0.host, port: $0.port, family: .any) }
        }
        return url.endpoint.map { site(of: $0.host, port: $0.port) }
    }

    private func site(of host: String, port: UInt16) -> DestinationSite {
        guard let fixed = addresses(of: host, port: port) else {
            return .server(host: host, port: port, family: addressFamily)
        }
        if fixed.count == 1 { return .server(host: "\(fixed[0])", port: port, family: addressFamily) }
        return .addresses(fixed, port: port)
    }

    /// The addresses that a person has given for a host, of the permitted versions of IP; `nil` for none.
    func addresses(of host: String, port: UInt16) -> [IPAddress]? {
        let name = comparableHostName(host)
        let given = fixedAddresses.first { $0.host == name && $0.port == port }?.addresses.filter(
            addressFamily.includes)
        return given?.isEmpty == false ? given : nil
    }

    /// The same without what shows who the client is, for a service that is not the destination itself.
    var anonymous: ConnectionSettings {
        var settings = self
        (settings.clientCertificate, settings.clientKey, settings.clientKeyPassword) = (nil, nil, nil)
        settings.pinnedKeys = []
        return settings
    }
}

/// Provides the settings for the requests of one destination, with their secrets.
package protocol ConnectionSource: Sendable {
    /// - Throws: ``TransportError`` of the kind `.secret`, where a secret cannot be read.
    func settings(for request: Request) async throws(TransportError) -> ConnectionSettings
    /// The proxy has refused the credentials: they are read again for the next request.
    func proxyRefused() async
}
