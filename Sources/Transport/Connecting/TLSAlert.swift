internal import CCurl

/// Alerts of TLS (RFC 8446, section 6.2), as OpenSSL and libcurl report them.
enum TLSAlert {
    /// Those with which a server refuses the certificate of a client, or the lack of one. With TLS 1.3 it judges that
    /// after the handshake, and the alert comes in place of the answer (RFC 8446, section 4.4.2.4).
    private static let ofClients = [
        "certificate required", "bad certificate", "unsupported certificate", "certificate revoked",
        "certificate expired", "certificate unknown",
    ]
    /// Those that mean this only where the client has shown a certificate.
    private static let ofShownCertificates = ["unknown ca", "access denied"]

    /// Whether the words of an error name an alert about the certificate of this client.
    ///
    /// - Parameter hasCertificate: The client shows one where the server asks for it.
    static func refusesClient(_ words: String, hasCertificate: Bool) -> Bool {
        (hasCertificate ? ofClients + ofShownCertificates : ofClients).contains { words.contains("alert \($0)") }
    }

    /// The words of libcurl, with the alert of the server where they hide it: an alert for an expired certificate gets
    /// the code of a server that is not trusted (`ossl_connect_step2` in lib/vtls/openssl.c), without the problem that
    /// libcurl names when it distrusts one itself.
    static func revealed(_ words: String, _ code: CURLcode) -> String {
        code == CURLE_PEER_FAILED_VERIFICATION && words == "SSL certificate verification failed"
            ? "the other end sent the TLS alert certificate expired" : words
    }

    /// Why this end has refused a certificate.
    ///
    /// - Parameter alert: The number of the alert that it sent for that.
    /// - Returns: `nil` for an alert about something else.
    static func problem(bySent alert: UInt8) -> String? {
        switch alert {
        case 42, 46: "it cannot be verified"
        case 43: "it is not for servers"
        case 44: "it was revoked"
        case 45: "it has expired"
        case 48: "it is not signed by an authority that is trusted here"
        default: nil
        }
    }
}
