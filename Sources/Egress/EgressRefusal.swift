/// Why a program's request to connect is refused.
package enum EgressRefusal: Error, Hashable, Sendable {
    /// No lease has these credentials.
    case unauthorized
    /// The request is not well formed; contains the fault.
    case malformed(String)
    /// The head of the request is too long.
    case tooLong
    /// A protocol or command that the proxy does not know.
    case unsupported(String)
    /// The lease or a rule of the proxy never allows it.
    case forbidden(String)
    /// Policy does not allow it now.
    case held(String)
    /// The name has no address.
    case unknownName(String)
    /// No connection could be made.
    case unreachable(String)
    /// The request did not come in time.
    case late

    /// For people, without credentials.
    package var text: String {
        switch self {
        case .unauthorized: "the user or password of the proxy is missing, wrong, or no longer valid"
        case .malformed(let fault): "the request is not well formed: \(fault)"
        case .tooLong: "the head of the request is longer than \(HTTPProxyHead.limit) bytes"
        case .unsupported(let what): "the proxy does not support \(what)"
        case .forbidden(let text), .unknownName(let text), .unreachable(let text): text
        case .held(let text): "policy does not allow it now: \(text)"
        case .late: "the request did not come in time"
        }
    }

    /// The status of an HTTP answer (RFC 9110, section 15).
    var status: (code: Int, phrase: String) {
        switch self {
        case .unauthorized: (407, "Proxy Authentication Required")
        case .malformed: (400, "Bad Request")
        case .tooLong: (431, "Request Header Fields Too Large")
        case .unsupported: (501, "Not Implemented")
        case .forbidden: (403, "Forbidden")
        case .held: (503, "Service Unavailable")
        case .unknownName, .unreachable: (502, "Bad Gateway")
        case .late: (408, "Request Timeout")
        }
    }

    /// The reply field of SOCKS (RFC 1928, section 6).
    var socksReply: UInt8 {
        switch self {
        case .unauthorized, .forbidden, .held: 2
        case .unknownName: 4
        case .unreachable: 5
        case .unsupported: 7
        case .malformed, .tooLong, .late: 1
        }
    }

    /// A whole HTTP answer.
    var answer: [UInt8] {
        let body = text + "\n"
        var lines = ["HTTP/1.1 \(status.code) \(status.phrase)", "Content-Type: text/plain; charset=utf-8"]
        if self == .unauthorized { lines.append("Proxy-Authenticate: Basic realm=\"sluice\"") }
        lines += ["Content-Length: \(body.utf8.count)", "Connection: close", "", ""]
        return Array((lines.joined(separator: "\r\n") + body).utf8)
    }
}
