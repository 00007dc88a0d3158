internal import Core
internal import Synchronization

// Answers about an account, and about the server itself.

extension VimeoServer {
    /// The answer about a token. It contains the token itself, which must appear nowhere in the product's output.
    static func verify(_ state: State) -> Reply {
        let (token, scopes) = (quoted(state.account.token), quoted(state.account.scopes.joined(separator: " ")))
        let user = state.account.hasUser ? #"{"uri": "/users/1", "name": "A person"}"# : "null"
        return Reply(
            status: 200, headers: [("Content-Type", "application/vnd.vimeo.auth+json")],
            body: #"{"access_token": \#(token), "token_type": "bearer", "scope": \#(scopes), "expires_on": null, "#
                + #""user": \#(user), "app": {"uri": "/apps/1", "name": "An application"}}"#)
    }

    static func me(_ state: State) -> Reply {
        let headers = [("Content-Type", "application/vnd.vimeo.user+json")]
        guard let quota = state.account.quota, state.account.scopes.contains("private") else {
            return Reply(status: 200, headers: headers, body: #"{"uri": "/users/1", "name": "A person"}"#)
        }
        let unit = quota.isCount ? "video_count" : "video_size"
        let counts =
            "\"free\": \(quota.free), \"max\": \(quota.max), \"used\": \(quota.max - quota.free), \"unit\": \"\(unit)\""
        // Of the two quotas, the space is the tighter one; the other is unlimited.
        let endless = "\"free\": null, \"max\": null, \"used\": \(quota.max - quota.free), \"unit\": \"\(unit)\""
        let isLifetime = state.account.isLifetime
        let reset = isLifetime ? "null" : state.account.reset.map { "\"\($0)\"" } ?? "null"
        let showing = isLifetime ? "lifetime" : "periodic"
        let (periodic, lifetime) = isLifetime ? (endless, counts) : (counts, endless)
        let blocks = [
            #""space": {\#(counts), "showing": "\#(showing)"}"#,
            #""periodic": {"period": "week", \#(periodic), "reset_date": \#(reset)}"#,
            #""lifetime": {\#(lifetime)}"#,
        ].joined(separator: ", ")
        return Reply(
            status: 200, headers: headers,
            body: #"{"uri": "/users/1", "name": "A person", "upload_quota": {\#(blocks)}}"#)
    }

    func list(_ target: String, _ state: State) -> Reply {
        let query = Self.query(target)
        let (page, most) = (max(1, Int(query["page"] ?? "") ?? 1), min(100, max(1, Int(query["per_page"] ?? "") ?? 25)))
        guard (query["sort"] ?? "date") == "date", ["asc", "desc", nil].contains(query["direction"]) else {
            return Self.refused(400, 2204, "the parameters are not valid", field: ("sort", 2201))
        }
        var shown = state.uploads.filter { upload in
            upload.isVideo && !upload.isDeleted
                && (upload.created ?? state.now) + state.behaviour.showsAfter <= state.now
        }
        if query["direction"] != "asc" { shown.reverse() }
        let videos = shown.dropFirst((page - 1) * most).prefix(most).map { self.shown($0, state) }
        let next = shown.count > page * most ? "\"/me/videos?page=\(page + 1)\"" : "null"
        return Reply(
            status: 200,
            body:
                "{\"total\": \(shown.count), \"paging\": {\"next\": \(next)}, \"data\": [\(videos.joined(separator: ", "))]}"
        )
    }

    /// A text as a JSON string.
    static func quoted(_ text: String) -> String {
        let inner = text.unicodeScalars.map { scalar in
            switch scalar {
            case "\"", "\\": "\\\(scalar)"
            case _ where scalar.value < 0x20:
                "\\u" + String(repeating: "0", count: scalar.value < 16 ? 3 : 2) + String(scalar.value, radix: 16)
            default: String(scalar)
            }
        }
        return "\"\(inner.joined())\""
    }

    func tooMany() -> Reply? {
        state.withLock { state in
            guard let rate = state.behaviour.rate else { return nil }
            let now = state.now
            state.calls = state.calls.filter { $0 > now - rate.in }
            var reply: Reply?
            if state.calls.count >= rate.calls {
                reply = Self.refused(429, 9000, "too many calls")
                let end = (state.calls.first ?? now) + rate.in
                let headers = [("X-RateLimit-Limit", "\(rate.calls)"), ("X-RateLimit-Remaining", "0")]
                switch rate.reset {
                case .date:
                    reply?.headers += headers + [("X-RateLimit-Reset", "\(WallTime(milliseconds: end + 999))")]
                case .seconds: reply?.headers += headers + [("X-RateLimit-Reset", "\(end / 1000 + 1)")]
                case .nothing: break
                }
            } else {
                state.calls.append(now)
            }
            return reply
        }
    }

    static func garble(_ exchange: Exchange, _ garbling: Garbling, _ reply: Reply) {
        switch garbling {
        case .html: exchange.reply(200, [("Content-Type", "text/html")], "<html>Welcome</html>")
        case .empty: exchange.reply(reply.status, reply.headers)
        case .fields: exchange.reply(reply.status, reply.headers, "{}")
        case .coded: exchange.reply(reply.status, reply.headers + [("Content-Encoding", "br")], "\u{B}\u{2}\u{1}{\u{3}")
        case .half:
            exchange.raw(
                "HTTP/1.1 \(reply.status) Whatever\r\nContent-Length: \(reply.body.utf8.count)\r\n\r\n\(reply.body.prefix(20))"
            )
            exchange.cut()
        }
    }

    static func httpDate(_ now: Int64) -> String {
        let (months, days) = (
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
            ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        )
        let utc = WallTime(milliseconds: now).utc
        let clock = [utc.hour, utc.minute, utc.second].map { padded($0, 2) }.joined(separator: ":")
        let day = "\(days[Int(now / 86_400_000) % 7]), \(padded(utc.day, 2)) \(months[utc.month - 1])"
        return "\(day) \(utc.year) \(clock) GMT"
    }
}
