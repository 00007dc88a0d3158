internal import API
internal import WebServer

extension WebReply {
    /// A picture, which the browser may keep, and shows again only if it still may read it.
    static func picture(_ picture: ThumbnailView, for request: WebRequest) -> WebReply {
        let tag = "\"\(picture.tag)\""
        let headers =
            PageAssets.protection(policy: "default-src 'none'; frame-ancestors 'none'; sandbox") + [
                ("Cache-Control", "private, no-cache"), ("ETag", tag), ("Content-Type", "image/jpeg"),
            ]
        if request.knows(tag) {
            return WebReply(status: 304, headers: headers, body: .none)
        }
        return WebReply(status: 200, headers: headers, body: .bytes(picture.bytes))
    }
}

extension WebRequest {
    /// Whether its client has what is tagged so, or, with `*`, anything (RFC 9110, section 13.1.2).
    ///
    /// - Parameter tag: With its quotation marks.
    func knows(_ tag: String) -> Bool {
        headers["if-none-match"].map { $0 == "*" || $0.contains(tag) } ?? false
    }
}
