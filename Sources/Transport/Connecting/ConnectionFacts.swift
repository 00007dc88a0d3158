internal import CCurl
package import Core

/// What a connection shows about the way to a server, for a person who checks it.
package struct ConnectionFacts: Hashable, Sendable {
    /// The address and port of the first machine: the server, or the proxy before it.
    package var peer: IPAddress?
    package var port: UInt16
    /// The address of this machine.
    package var local: IPAddress?
    /// Like `HTTP/1.1`.
    package var protocolName: String
    /// The server's own certificate; `nil` without TLS.
    package var certificate: Certificate?
    /// From the start of the request to the first byte of its answer.
    package var time: Duration

    package struct Certificate: Hashable, Sendable {
        /// As OpenSSL writes names: `CN = nas.example`.
        package var subject: String
        package var issuer: String
        /// `nil` where it cannot be read.
        package var expires: WallTime?
    }

    /// - Parameter easy: A handle whose request has ended.
    init(_ easy: UnsafeMutableRawPointer) {
        func text(_ info: CURLINFO) -> String? {
            var pointer: UnsafeMutableRawPointer?
            guard sluice_get_pointer(easy, info, &pointer) == CURLE_OK, let pointer else { return nil }
            return String(cString: pointer.assumingMemoryBound(to: CChar.self))
        }
        func number(_ info: CURLINFO) -> Int {
            var value = 0
            return sluice_get_long(easy, info, &value) == CURLE_OK ? value : 0
        }
        peer = text(CURLINFO_PRIMARY_IP).flatMap { IPAddress($0) }
        port = UInt16(clamping: number(CURLINFO_PRIMARY_PORT))
        local = text(CURLINFO_LOCAL_IP).flatMap { IPAddress($0) }
        protocolName =
            switch number(CURLINFO_HTTP_VERSION) {
            case Int(CURL_HTTP_VERSION_1_0): "HTTP/1.0"
            case Int(CURL_HTTP_VERSION_2_0): "HTTP/2"
            default: "HTTP/1.1"
            }
        var microseconds = 0
        sluice_get_off(easy, CURLINFO_STARTTRANSFER_TIME_T, &microseconds)
        time = .microseconds(microseconds)
        certificate = Self.certificate(easy)
    }

    /// Reads the fields of the first certificate of the chain (CURLINFO_CERTINFO(3)).
    private static func certificate(_ easy: UnsafeMutableRawPointer) -> Certificate? {
        var pointer: UnsafeMutableRawPointer?
        guard sluice_get_pointer(easy, CURLINFO_CERTINFO, &pointer) == CURLE_OK, let pointer else { return nil }
        let all = pointer.assumingMemoryBound(to: curl_certinfo.self).pointee
        guard all.num_of_certs > 0, var line = all.certinfo[0] else { return nil }
        var certificate = Certificate(subject: "", issuer: "")
        while true {
            if let data = line.pointee.data {
                let text = String(cString: data)
                func value(_ name: String) -> String? {
                    text.hasPrefix(name + ":") ? String(text.dropFirst(name.count + 1)) : nil
                }
                if let name = value("Subject") { certificate.subject = name }
                if let name = value("Issuer") { certificate.issuer = name }
                if let date = value("Expire date") { certificate.expires = expiry(date) }
            }
            guard let next = line.pointee.next else { break }
            line = next
        }
        return certificate
    }

    /// `Mar  9 12:00:00 2027 GMT`, as OpenSSL writes it.
    private static func expiry(_ text: String) -> WallTime? {
        let words = text.split(separator: " ")
        guard words.count >= 4 else { return nil }
        let day = words[1].count == 1 ? "0\(words[1])" : "\(words[1])"
        // The name of the day is not evaluated.
        return httpDate("Mon, \(day) \(words[0]) \(words[3]) \(words[2]) GMT")
    }
}
