internal import Core
internal import Transport
internal import WebServer

/// The files of the web page, which are part of the program.
enum PageAssets {
    /// Whether a path belongs to the page: its files need no token, for they hold no secret.
    static func isPage(_ path: String) -> Bool { path == "/" || path.hasPrefix("/assets/") }

    /// The page may load its own files, and nothing else; nothing may frame it; no text becomes markup or a script
    /// (Content Security Policy Level 3; Trusted Types).
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

    private static let headers =
        protection(policy: policy) + [
            ("Cross-Origin-Opener-Policy", "same-origin"), ("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding"),
        ]

    /// What keeps an answer from being framed, guessed, or used by pages of other origins.
    static func protection(policy: String) -> [(String, String)] {
        [
            ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
    }

    /// A path of the page without a file is 404.
    static func reply(to request: WebRequest) -> WebReply {
        let name = request.path == "/" ? "index.html" : String(request.path.dropFirst("/assets/".count))
        guard let file = EmbeddedPage.files.first(where: { $0.name == name }) else {
            var reply = WebReply.text(404, "the web page has no such file")
            reply.headers += headers
            return reply
        }
        let isPacked = acceptsGzip(request.headers["accept-encoding"] ?? "")
        // A strong tag is that of the bytes that are sent (RFC 9110, section 8.8.3.3).
        let tag = "\"\(file.digest)\(isPacked ? "" : "-plain")\""
        var head = headers + [("ETag", tag), ("Content-Type", type(of: name))]
        if request.knows(tag) { return WebReply(status: 304, headers: head, body: .none) }
        let packed = bytes(base64: file.gzip.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }) ?? []
        if isPacked { head.append(("Content-Encoding", "gzip")) }
        guard let content = isPacked ? packed : unpacked(gzip: packed, limit: limit), !content.isEmpty else {
            // The build made something else of it, which is a bug of ours.
            var reply = WebReply.text(500, "this file of the web page is broken in the program")
            reply.headers += headers
            return reply
        }
        return WebReply(status: 200, headers: head, body: .bytes(content))
    }

    /// The most bytes of all files together.
    private static let limit = 250_000

    /// RFC 9110, section 12.5.3.
    private static func acceptsGzip(_ header: String) -> Bool {
        header.lowercased().split(separator: ",").contains { item in
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard parts.first == "gzip" else { return false }
            return !parts.dropFirst().contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
        }
    }

    private static func type(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        default: "application/octet-stream"
        }
    }
}
