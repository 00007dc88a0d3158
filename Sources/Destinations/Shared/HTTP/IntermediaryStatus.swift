internal import Transport

/// Statuses that say nothing about a file: an intermediary answers with them, or the service for reasons of its own or
/// of the account.
///
/// 402 (RFC 9110, section 15.5.3) is about an account; 406 and 418 are answers of firewalls for web applications; 417
/// (15.5.18) is about `Expect`, which is left out from then on; 426 (15.5.22) and 428 (RFC 6585) are about the
/// protocol; 451 (RFC 7725) is about a place or a law; 499 is nginx's status for a client that closed the connection.
enum IntermediaryStatus {
    static let all: Set<Int> = [402, 406, 417, 418, 426, 428, 451, 499]

    /// Statuses below 500 that an intermediary may also send after it has forwarded the request. 417 refuses a request
    /// without its body.
    static let mayBeForwarded = all.subtracting([417]).union([408, 421, 425, 429])

    /// Statuses from 500 on that are about the protocol, the network or a gateway, besides 502, 503 and 504.
    ///
    /// 505 (RFC 9110, section 15.6.6), 506 (RFC 2295) and 510 (RFC 2774) are about the protocol; 508 (RFC 5842) is a
    /// loop; 509 is a used-up bandwidth; 511 (RFC 6585, section 6) is a login portal; 520 to 530 are Cloudflare's about
    /// the server behind it; 561 is that of Amazon's load balancer; 598 and 599 are timeouts of proxies.
    static let ofGateways = Set([505, 506, 508, 509, 510, 511, 561, 598, 599]).union(520...530)
}

extension Response {
    /// Whether it has a header of tus, which no intermediary adds.
    var hasTusHeader: Bool {
        headers.lines.contains {
            let name = $0.name.lowercased()
            return name == "tus-resumable" || name.hasPrefix("upload-")
        }
    }

    /// Whether an intermediary may have answered in place of the remote, by the status or the web page in its body.
    var mayBeOfPath: Bool {
        if hasTusHeader { return false }
        return IntermediaryStatus.all.contains(status) || IntermediaryStatus.ofGateways.contains(status)
            || status >= 500 && isWebPageForXML
    }

    /// Whether something in a refusal shows that a service has given it, and no proxy: a header or an error in the form
    /// of its protocol, or a way to authenticate that no proxy has.
    var isOfService: Bool {
        let own = ["x-amz-", "x-oss-", "x-acs-", "x-vimeo-", "vimeo-"]
        if hasTusHeader || headers.lines.contains(where: { own.contains(where: $0.name.lowercased().hasPrefix) }) {
            return true
        }
        if let scheme = headers["WWW-Authenticate"]?.split(separator: " ").first?.lowercased(),
            !["basic", "digest", "ntlm", "negotiate"].contains(scheme)
        {
            return true
        }
        if case .object? = JSONValue.read(body) { return true }
        return XMLValue.read(body)?.name == "Error"
    }
}
