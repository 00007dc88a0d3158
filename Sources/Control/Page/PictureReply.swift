internal import API
internal import WebServer

extension WebReply {
    /// A picture, which the browser may keep for a day.
    static func picture(_ picture: ThumbnailView, for request: WebRequest) -> WebReply {
        let tag = "\"\(picture.tag)\""
        let headers =
            PageAssets.protection(policy: "default-src 'none'; frame-ancestors 'none'; sandbox") + [
                ("Cache-Control", "private, max-age=86400"), ("ETag", tag), ("Content-Type", "image/jpeg"),
            ]
        // RFC 9110, section 13.1.2.
        if let known = request.headers["if-none-match"], known == "*" || known.contains(tag) {
            return WebReply(status: 304, headers: headers, body: .none)
        }
        return WebReply(status: 200, headers: headers, body: .bytes(picture.bytes))
    }
}
