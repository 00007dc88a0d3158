internal import Glibc

/// A reply that is written directly to a socket, after which the connection is not used any more.
enum RawReply {
    /// - Returns: Whether all of it is in the socket's buffer, which is large enough for a short reply.
    static func send(_ reply: WebReply, to socket: CInt) -> Bool {
        var body: [UInt8] = []
        if case .bytes(let bytes) = reply.body { body = bytes }
        var head = "HTTP/1.1 \(reply.status) \(phrase(reply.status))\r\nConnection: close\r\n"
        if reply.status != 204 { head += "Content-Length: \(body.count)\r\n" }
        for (name, value) in reply.headers {
            guard !"\(name)\(value)".utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return false }
            head += "\(name): \(value)\r\n"
        }
        let all = Array((head + "\r\n").utf8) + body
        guard Glibc.send(socket, all, all.count, CInt(MSG_NOSIGNAL)) == all.count else { return false }
        return shutdown(socket, CInt(SHUT_WR)) == 0
    }

    /// The reason phrases of RFC 9110, section 15; clients ignore them, people with a packet dump read them.
    private static func phrase(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 409: "Conflict"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 423: "Locked"
        case 507: "Insufficient Storage"
        default: status < 400 ? "OK" : "Error"
        }
    }
}
