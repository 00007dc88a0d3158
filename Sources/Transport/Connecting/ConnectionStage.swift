internal import CCurl

/// How far the connection of one transfer got.
struct ConnectionStage {
    /// The request had a connection, with TLS where it needs that.
    var isConnected = false
    /// TCP was connected when a limit ended the transfer.
    var hasPeer = false
    /// The fatal alert of TLS that this end has sent; `nil` for none, and where libcurl's own words are enough.
    var sentAlert: UInt8?
}

/// The way that the connection of one transfer takes.
struct ConnectionWay {
    /// Bytes that tunnels and IPsec add to each packet.
    var overhead: Int64 = 0
    /// Whether it leads to another machine.
    var leavesMachine = true
    /// Whether it goes through a proxy on this machine, which connects to the server itself. Judged once: the connection
    /// has to end where that says.
    let usesLocalProxy: Bool
}

extension CurlTransfer {
    /// The error when a limit is over. A connection that TCP has made is described as that.
    func late(_ kind: TransportError.Kind, _ words: String) -> TransportError {
        guard stage.hasPeer, !stage.isConnected else { return error(kind, 0, words) }
        if isInHandshake {
            let ends = hasTunnel ? "the proxy is connected to the server" : "TCP is connected"
            return error(kind, 0, "\(ends), and TLS does not answer: \(words)").withPeer(isInTLS: true)
        }
        guard let proxy = request.proxy else { return error(kind, 0, words) }
        return error(kind, 0, "TCP is connected to the proxy \(proxy.place), which does not answer: \(words)")
            .withPeer(isInTLS: false)
    }

    /// Whether the connection waits for the server's part of the handshake of TLS, where TCP is connected.
    private var isInHandshake: Bool {
        guard WebAddress(request.url).scheme == "https" else { return false }
        guard let proxy = request.proxy else { return true }
        if proxy.speaksHTTP { return hasTunnel }
        // Past a SOCKS proxy libcurl marks the certificate as not verified when the handshake begins.
        var verified = 0
        if let easy { sluice_get_long(easy, CURLINFO_SSL_VERIFYRESULT, &verified) }
        return verified != 0
    }

    /// A proxy has connected to the server (`CONNECT`).
    var hasTunnel: Bool {
        var status = 0
        if let easy { sluice_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &status) }
        return (200..<300).contains(status)
    }
}
