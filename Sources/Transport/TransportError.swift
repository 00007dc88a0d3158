internal import CCurl

/// A request that ended without an answer.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable {
        /// The name has no address.
        case resolve
        /// No host answers there.
        case connect
        /// The interface of the request cannot be used, or may not be used any more.
        case interface
        /// A proxy on the way refuses, or cannot be talked to: the server has not received the request.
        case proxy
        /// No trust: certificate, protocol version.
        case tls
        /// The server has another public key than those that are pinned.
        case pinnedKey
        /// The client's certificate or key cannot be used, or the server does not accept it.
        case clientCertificate
        /// A secret that the request needs cannot be read.
        case secret
        /// TLS was requested, and the other end does not speak it.
        case notTLS
        /// There was no progress for as long as ``Limits`` allow.
        case stalled
        /// The whole request took too long.
        case timedOut
        /// The connection broke, or the answer is invalid (HTTP/0.9, an unknown version, a header without end): the
        /// request may have been received.
        case reset
        /// The file could not be read, or ended before the promised length.
        case sourceFile
        /// The answer is longer than allowed.
        case tooLarge
        case cancelled
        /// The request was not sent.
        case other
    }

    package let kind: Kind
    /// The `CURLcode`, as in libcurl-errors(3); 0 where the objection is not libcurl's.
    package let code: Int32
    /// A sentence, which often names the host, port or certificate.
    package let detail: String
    /// Without user, query and fragment, so that no password or signature gets into a log.
    package let url: String
    /// Bytes of the body that the socket had accepted.
    package let bytesSent: Int64
    /// Bytes that were sent for this request nevertheless, as counted by the kernel; see ``Request/onWire``.
    package let bytesOnWire: Int64
    package let delivery: DeliveryBounds
    /// The request had a connection, perhaps before the one that the error is about: it may have been received.
    package let wasSent: Bool
    /// The proxy that the request should have gone through.
    package private(set) var proxy: ProxyServer?
    /// That proxy had connected to the server (`CONNECT`): the error is the server's.
    package private(set) var isTunneled = false
    /// The request would have shown a certificate of the client.
    package private(set) var showsCertificate = false
    /// TCP was connected when the time for a connection was over.
    package private(set) var hasPeer = false
    /// The same, and it was the server that did not answer in the handshake of TLS.
    package private(set) var isOfSilentTLS = false
    /// The status of the answer, where its rest did not come or cannot be read.
    package private(set) var status: Int?

    /// - Parameters:
    ///   - url: The requested address; possible secrets are removed here.
    ///   - delivery: Without it only the bytes that the socket accepted are known.
    package init(
        kind: Kind, code: Int32 = 0, detail: String, url: String, bytesSent: Int64 = 0, bytesOnWire: Int64 = 0,
        delivery: DeliveryBounds? = nil, wasSent: Bool = false
    ) {
        self.kind = kind
        self.code = code
        self.detail = detail
        self.url = withoutSecrets(url)
        self.bytesSent = bytesSent
        self.bytesOnWire = bytesOnWire
        self.delivery = delivery ?? DeliveryBounds(atLeast: 0, atMost: bytesSent)
        self.wasSent = wasSent
    }

    /// The words of a connection over TLS that broke. libcurl keeps its first message: where the server closes right after
    /// the handshake, that is about the address of a socket, and the server's alert is lost.
    static func explained(_ words: String) -> String {
        guard words.hasPrefix("getpeername() failed") else { return words }
        return "the server closed the connection right after the handshake, as one does that requires a client "
            + "certificate (`http.client_certificate`)"
    }

    package var description: String { "\(url): \(detail)" }

    /// The same for a request that should have gone through a proxy.
    ///
    /// - Parameters:
    ///   - isTunneled: The proxy had connected to the server.
    ///   - showsCertificate: The request would have shown a certificate of the client.
    func through(_ proxy: ProxyServer?, isTunneled: Bool, showsCertificate: Bool) -> TransportError {
        var error = self
        (error.proxy, error.isTunneled, error.showsCertificate) = (proxy, isTunneled, showsCertificate)
        return error
    }

    /// The same for a connection that TCP has made.
    ///
    /// - Parameter isInTLS: The server is silent in the handshake of TLS.
    func withPeer(isInTLS: Bool) -> TransportError {
        var error = self
        (error.hasPeer, error.isOfSilentTLS) = (true, isInTLS)
        return error
    }

    /// The same after the beginning of an answer; 0 for none.
    func after(status: Int) -> TransportError {
        var error = self
        error.status = status >= 200 ? status : nil
        return error
    }

    /// This machine cannot use the certificate or the key that it should show: the server has not judged them.
    package var isOfOwnCertificate: Bool {
        kind == .clientCertificate && code == Int32(CURLE_SSL_CERTPROBLEM.rawValue)
    }

    /// The two ends have no version of TLS in common.
    package var isOfVersion: Bool {
        kind == .tls && ["alert protocol version", "unsupported protocol"].contains { detail.contains($0) }
    }

    /// The file of trusted certificates cannot be used.
    package var isOfTrustFile: Bool { kind == .tls && code == Int32(CURLE_SSL_CACERT_BADFILE.rawValue) }

    /// The server has refused the handshake with an alert that does not say why: for lack of a client certificate, or
    /// of a version or cipher that both ends have.
    package var isOfRefusedHandshake: Bool {
        kind == .tls && code == Int32(CURLE_SSL_CONNECT_ERROR.rawValue) && !isOfVersion
            && ["handshake failure", "insufficient security", "access denied", "unknown ca"].contains {
                detail.contains("alert \($0)")
            }
    }

    /// The server has ended the handshake with another alert.
    package var isOfServersAlert: Bool {
        kind == .tls && code == Int32(CURLE_SSL_CONNECT_ERROR.rawValue) && !isOfVersion && detail.contains(" alert ")
    }

    /// TLS was requested, and the other end closed the connection before it had shown a certificate.
    package var isOfHandshake: Bool {
        kind == .tls && code == Int32(CURLE_SSL_CONNECT_ERROR.rawValue) && !detail.contains("alert")
    }
}

/// `url` without user, password, query and fragment.
package func withoutSecrets(_ url: String) -> String {
    // By bytes: a combining accent after a delimiter makes another `Character` of it.
    var text = Array(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
    if let start = text.firstRange(of: "://".utf8)?.upperBound {
        let authority = text[start...].prefix { $0 != UInt8(ascii: "/") }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { text.removeSubrange(start...at) }
    }
    return String(decoding: text, as: UTF8.self)
}

extension TransportError.Kind {
    /// Errors before a request leaves. libcurl repeats a request over a new connection when a kept one is closed without
    /// an answer. The server may have received the first one, so that a failure to connect then does not show that it has
    /// not.
    private static let ofNewConnection = [
        CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_PROXY,
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CERTPROBLEM,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED,
        CURLE_SSL_ENGINE_NOTFOUND,
    ]

    /// - Parameters:
    ///   - isConnected: Whether the request had a connection by then.
    ///   - words: The message of the TLS library, whose codes libcurl does not pass on. For data that is no TLS record
    ///     OpenSSL reports a wrong version number, and GnuTLS an unexpected packet.
    ///   - hasCertificate: The request shows a certificate of the client.
    init(_ code: CURLcode, isConnected: Bool, words: String, hasCertificate: Bool) {
        let isNoRecord = ["wrong version number", "packet length too long", "http request", "unexpected TLS packet"]
        let mayBeAlert = [
            CURLE_SSL_CONNECT_ERROR, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PEER_FAILED_VERIFICATION,
        ].contains { $0 == code }
        if isConnected, Self.ofNewConnection.contains(where: { $0 == code }) {
            self = .reset
        } else if code == CURLE_SSL_CONNECT_ERROR, isNoRecord.contains(where: { words.contains($0) }) {
            self = .notTLS
        } else if mayBeAlert, TLSAlert.refusesClient(words, hasCertificate: hasCertificate) {
            self = .clientCertificate
        } else {
            self.init(code, isConnected: isConnected)
        }
    }

    private init(_ code: CURLcode, isConnected: Bool) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = .resolve
        case CURLE_COULDNT_CONNECT: self = .connect
        case CURLE_PROXY: self = .proxy
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: self = .pinnedKey
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT: self = .clientCertificate
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_NOTFOUND:
            self = .tls
        case CURLE_OPERATION_TIMEDOUT: self = isConnected ? .timedOut : .connect
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY,
            CURLE_UPLOAD_FAILED, CURLE_SEND_FAIL_REWIND:
            self = .reset
        // An objection of libcurl's once there is a connection is about the answer.
        default: self = isConnected ? .reset : .other
        }
    }
}
