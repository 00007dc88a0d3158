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

    /// - Parameters:
    ///   - url: The requested address; possible secrets are removed here.
    ///   - delivery: Without it only the bytes that the socket accepted are known.
    package init(
        kind: Kind, code: Int32 = 0, detail: String, url: String, bytesSent: Int64 = 0, bytesOnWire: Int64 = 0,
        delivery: DeliveryBounds? = nil
    ) {
        self.kind = kind
        self.code = code
        self.detail = detail
        self.url = withoutSecrets(url)
        self.bytesSent = bytesSent
        self.bytesOnWire = bytesOnWire
        self.delivery = delivery ?? DeliveryBounds(atLeast: 0, atMost: bytesSent)
    }

    package var description: String { "\(url): \(detail)" }

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
    /// - Parameter words: The message of the TLS library, whose codes libcurl does not pass on. For data that is no TLS
    ///   record OpenSSL reports a wrong version number, and GnuTLS an unexpected packet.
    init(_ code: CURLcode, isConnected: Bool, words: String) {
        let isNoRecord = ["wrong version number", "packet length too long", "http request", "unexpected TLS packet"]
        if code == CURLE_SSL_CONNECT_ERROR, isNoRecord.contains(where: { words.contains($0) }) {
            self = .notTLS
        } else {
            self.init(code, isConnected: isConnected)
        }
    }

    /// - Parameter isConnected: Whether the request had a connection by then.
    init(_ code: CURLcode, isConnected: Bool) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = .resolve
        case CURLE_COULDNT_CONNECT: self = .connect
        case CURLE_PROXY: self = .proxy
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_NOTFOUND:
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
