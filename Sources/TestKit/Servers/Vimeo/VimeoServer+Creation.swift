internal import Synchronization

// Requests and answers of a creation.

extension VimeoServer {
    /// The number of a new upload by PUT, as a creation would have made it.
    package func requestedUpload(of size: Int64) -> Int {
        state.withLock { state in
            let number = state.uploads.count + 1
            state.uploads.append(Upload(number: number, flow: .streaming, size: size, isVideo: true))
            return number
        }
    }

    /// The versions of the API that have tickets.
    private static let ofTickets = ["3.0", "3.1", "3.2", "3.3"]

    func create(_ body: [UInt8], _ version: String?, _ state: inout State) -> Reply {
        let wish: RequestedUpload
        switch Self.read(body) {
        case .failure(let refusal): return refusal.reply
        case .success(let read): wish = read
        }
        let account = state.account
        // The flow of tickets belongs to the versions before 3.4, and `upload` to that one.
        if wish.type != nil, !Self.ofTickets.contains(version ?? "") {
            return Self.refused(400, 3116, "type is not of this version: use upload.approach")
        }
        if wish.hasUpload, version != "3.4" { return Self.refused(400, 3116, "upload is not of this version") }
        if let type = wish.type {
            guard account.isLegacy else {
                return Self.refused(400, 2204, "the parameters are not valid", field: ("type", 2552))
            }
            guard type == "streaming" else { return Self.refused(400, 2230, "no such type") }
        } else if wish.approach == "streaming", !account.isLegacy {
            return Self.refused(400, 2204, "the parameters are not valid", field: ("upload.approach", 2552))
        } else if wish.approach != "tus", wish.approach != "streaming" {
            return Self.refused(400, 2230, "no such approach")
        }
        if let reply = Self.forbidden(wish, account) { return reply }
        let isTicket = wish.type != nil
        guard let size = wish.size ?? (isTicket && !wish.hasSize ? -1 : nil), size >= 0 || isTicket && !wish.hasSize
        else {
            return Self.refused(400, 2204, "the parameters are not valid", field: ("size", 2254))
        }
        if let quota = account.quota {
            if quota.isCount, quota.free < 1 {
                return Self.refused(403, account.isLifetime ? 4103 : 4104, "the count of videos is reached")
            }
            if !quota.isCount, quota.free < size {
                return Self.refused(403, account.isLifetime ? 4101 : 4102, "the quota is reached")
            }
        }
        if size > account.largest { return Self.refused(403, 3428, "the file is larger than the quota") }
        let flow: Upload.Flow = isTicket ? .ticket : wish.approach == "tus" ? .tus : .streaming
        let number = state.uploads.count + 1
        let upload = Upload(
            number: number, flow: flow, size: size, isVideo: flow != .ticket, fields: wish.values, created: state.now)
        state.uploads.append(upload)
        if flow == .ticket { return ticket(number, state) }
        return Reply(status: size == 0 ? 200 : state.behaviour.created, body: shown(upload, state))
    }

    /// The answer to a creation of the flow with four steps.
    private func ticket(_ number: Int, _ state: State) -> Reply {
        let uri = "/users/1/uploads/\(number)"
        let end = "\(uri)?video_file_id=\(1000 + number)&signature=c\(number)"
        let secure = state.account.hasNoLink ? "null" : "\"\(link(number))\""
        // The answer also has the link without TLS, which is no upload and must not be used.
        let open = "\"\(link(number).replacing("/upload/", with: "/open/"))\""
        let user = Self.me(state).body
        return Reply(
            status: 201, headers: [("Content-Type", "application/vnd.vimeo.uploadattempt+json")],
            body: #"{"uri": "\#(uri)", "ticket_id": "t\#(number)", "form": null, "upload_link": \#(open), "#
                + #""upload_link_secure": \#(secure), "complete_uri": "\#(end)", "user": \#(user)}"#)
    }

    struct Refusal: Error { let reply: Reply }

    struct RequestedUpload {
        var type: String?
        var approach: String?
        /// A number of bytes, as a number or a decimal text.
        var size: Int64?
        var hasSize: Bool
        var hasUpload: Bool
        var values: [String: String]
    }
}
