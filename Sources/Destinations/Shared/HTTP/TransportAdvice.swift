internal import Core
internal import Transport

// What a person can do about a request without an answer: texts that follow the words of the transport.

extension TransportError {
    /// What a person can do about a server that is not trusted.
    var distrustAdvice: String {
        // Not libcurl's: the text says what to do.
        if code == 0 { return "" }
        if isOfTrustFile { return "; the file must have certificates alone (PEM), all of them valid" }
        if isOfVersion { return "; the server has no version of TLS that `http.tls_min` allows" }
        if isOfRefusedHandshake {
            return showsCertificate
                ? "; the server refused the certificate in `http.client_certificate`, or shares no version of TLS or "
                    + "cipher with this program"
                : "; the server may require a client certificate (`http.client_certificate`), or shares no version of "
                    + "TLS or cipher with this program"
        }
        if isOfServersAlert {
            return "; the server ended the handshake: it may have no certificate for this name, or not work now"
        }
        let hint =
            isOfHandshake
            ? "; the server closed the connection before it showed a certificate: it may have no TLS, or none for this name or version"
            : "; a certificate that is not trusted means a wrong address, a missing http.ca_file, or a portal in between"
        let ofProxy =
            proxy?.scheme == .https && !isTunneled ? "; if it is that of the proxy, http.proxy_ca_file is for it" : ""
        return hint + ofProxy
    }

    /// What a person can do about the certificate of this client.
    var certificateAdvice: String {
        if code == 0 { return "" }
        guard isOfOwnCertificate else {
            guard showsCertificate else {
                return "; the server requires a client certificate: set `http.client_certificate` and `http.client_key`"
            }
            return "; the server does not accept the certificate in `http.client_certificate`"
                + (detail.contains("certificate expired") ? ", which has expired" : "")
        }
        return detail.lowercased().contains("private key")
            ? "; `http.client_key` must be the key of `http.client_certificate`, and `http.client_key_password` its "
                + "password if it has one"
            : "; the file of `http.client_certificate` has no usable certificate (PEM)"
    }
}
