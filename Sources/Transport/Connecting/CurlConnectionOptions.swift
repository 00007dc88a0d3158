internal import CCurl
internal import Core
internal import Linux

/// Sets libcurl's options for the connection of one transfer.
struct CurlConnectionOptions {
    let transfer: CurlTransfer
    let easy: UnsafeMutableRawPointer

    private var request: Request { transfer.request }
    private var settings: ConnectionSettings { request.connection }

    func set() throws(TransportError) {
        try setAddress()
        try setProxy()
        try setTLS()
        try setLookup()
    }

    private func setAddress() throws(TransportError) {
        try set(CURLOPT_URL, request.url)
        sluice_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // Dots in a path stay: the address of an upload is defined by the server.
        sluice_set_long(easy, CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        sluice_set_long(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        sluice_set_long(easy, CURLOPT_FOLLOWLOCATION, 0)
        let isEncrypted = WebAddress(request.url).scheme == "https"
        let version =
            switch settings.http2 {
            case .never: CURL_HTTP_VERSION_1_1
            case .auto: CURL_HTTP_VERSION_2TLS
            case .always: isEncrypted ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
            }
        sluice_set_long(easy, CURLOPT_HTTP_VERSION, Int(version))
        // libcurl 7.88 begins HTTP/2 again on a kept connection to an http server, which the server takes for an error.
        if version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE { sluice_set_long(easy, CURLOPT_FORBID_REUSE, 1) }
        // libcurl's own timer is a second safety: the loop ends a transfer that has not connected in time.
        sluice_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(request.limits.connect.inMilliseconds) + 1000)
        sluice_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1000)
        if let socket = request.unixSocket { setPath(CURLOPT_UNIX_SOCKET_PATH, socket) }
    }

    private func setProxy() throws(TransportError) {
        // Set even if there is none, so that libcurl does not read the environment itself.
        let proxy = request.proxy
        try set(CURLOPT_PROXY, try address(of: proxy))
        try set(CURLOPT_NOPROXY, "")
        guard let proxy else { return }
        // Some proxies close a connection after each answer and do not say so: a request that is sent over it at that
        // moment would have no answer. The tunnel to an https server is the server's own connection.
        if proxy.speaksHTTP, WebAddress(request.url).scheme == "http" {
            sluice_set_long(easy, CURLOPT_FORBID_REUSE, 1)
        }
        sluice_set_long(easy, CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let file = settings.proxyCAFile { setPath(CURLOPT_PROXY_CAINFO, file) }
    }

    /// The address of the proxy with its user and password; empty for none.
    private func address(of proxy: ProxyServer?) throws(TransportError) -> String {
        guard let proxy else { return "" }
        guard proxy.origin == .configuration else { return proxy.url }
        // libcurl would leave the proxy out without an error.
        guard [settings.proxyUser, settings.proxyPassword].allSatisfy({ $0.map(ProxyServer.mayBeSent) ?? true }) else {
            throw transfer.error(
                .other, 0,
                "`http.proxy_user` or `http.proxy_password` has a control character; nothing is sent past the proxy")
        }
        return proxy.url(user: settings.proxyUser, password: settings.proxyPassword)
    }

    private func setTLS() throws(TransportError) {
        let lowest =
            switch settings.lowestTLS {
            case .v1_2: CURL_SSLVERSION_TLSv1_2
            case .v1_3: CURL_SSLVERSION_TLSv1_3
            }
        sluice_set_long(easy, CURLOPT_SSLVERSION, Int(lowest))
        sluice_set_long(easy, CURLOPT_SSL_VERIFYPEER, request.verifiesTLS ? 1 : 0)
        sluice_set_long(easy, CURLOPT_SSL_VERIFYHOST, request.verifiesTLS ? 2 : 0)
        if request.wantsFacts {
            // A kept connection and a resumed session show no certificate.
            sluice_set_long(easy, CURLOPT_CERTINFO, 1)
            sluice_set_long(easy, CURLOPT_FRESH_CONNECT, 1)
            sluice_set_long(easy, CURLOPT_SSL_SESSIONID_CACHE, 0)
        }
        if let file = request.caFile ?? settings.caFile { setPath(CURLOPT_CAINFO, file) }
        if !settings.pinnedKeys.isEmpty, request.verifiesTLS {
            try set(CURLOPT_PINNEDPUBLICKEY, settings.pinnedKeys.joined(separator: ";"))
        }
        guard let certificate = settings.clientCertificate else { return }
        setPath(CURLOPT_SSLCERT, certificate)
        if let key = settings.clientKey {
            // libcurl copies it.
            let bytes = Array(key.utf8)
            let code = bytes.withUnsafeBytes { sluice_set_blob(easy, CURLOPT_SSLKEY_BLOB, $0.baseAddress, $0.count) }
            try check(code)
        }
        // Set even if there is none: without one OpenSSL asks for the password of an encrypted key on the terminal, and
        // libcurl 7.88 reads a null pointer where the key is in memory (`passwd_callback` in lib/vtls/openssl.c).
        try set(CURLOPT_KEYPASSWD, settings.clientKeyPassword ?? "")
    }

    private func setLookup() throws(TransportError) {
        let family =
            switch settings.addressFamily {
            case .any: CURL_IPRESOLVE_WHATEVER
            case .ipv4: CURL_IPRESOLVE_V4
            case .ipv6: CURL_IPRESOLVE_V6
            }
        sluice_set_long(easy, CURLOPT_IPRESOLVE, Int(family))
        var names: [ResolvedName] = []
        for fixed in settings.fixedAddresses {
            guard let addresses = settings.addresses(of: fixed.host, port: fixed.port) else { continue }
            names += fixed.spellings.map {
                ResolvedName(host: $0, port: fixed.port, addresses: addresses, isFixed: true)
            }
        }
        if let resolved = transfer.resolved { names.append(resolved) }
        var list: UnsafeMutablePointer<curl_slist>?
        for name in names { list = curl_slist_append(list, name.entry) ?? list }
        if !names.isEmpty { try transfer.set(easy, CURLOPT_RESOLVE, list) }
    }

    private func set(_ option: CURLoption, _ value: String) throws(TransportError) {
        try transfer.set(easy, option, value)
    }

    private func setPath(_ option: CURLoption, _ path: FilePath) {
        _ = path.withCString { sluice_set_string(easy, option, $0) }
    }

    private func check(_ code: CURLcode) throws(TransportError) {
        if code != CURLE_OK {
            throw transfer.error(.other, Int32(code.rawValue), String(cString: curl_easy_strerror(code)))
        }
    }
}
