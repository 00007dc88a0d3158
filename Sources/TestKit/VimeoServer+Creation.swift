internal import FoundationEssentials
internal import Synchronization

// What a creation may ask for, and what it gets.

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
        let wish: Wish
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
            number: number, flow: flow, size: size, isVideo: flow != .ticket, fields: wish.said, created: state.now)
        state.uploads.append(upload)
        if flow == .ticket {
            return Reply(
                status: 201,
                body: "{\"uri\": \"/users/1/uploads/\(number)\", \"ticket_id\": \"t\(number)\", "
                    + "\"upload_link_secure\": \"\(link(number))\", \"complete_uri\": \"/users/1/uploads/\(number)?signature=c\(number)\"}"
            )
        }
        return Reply(status: size == 0 ? 200 : state.behaviour.created, body: shown(upload, state))
    }

    struct Refusal: Error { let reply: Reply }

    struct Wish {
        var type: String?
        var approach: String?
        /// A count of bytes, as a number or in decimal.
        var size: Int64?
        var hasSize: Bool
        var hasUpload: Bool
        var said: [String: String]
    }

    private struct Written: Decodable {
        struct Upload: Decodable {
            let approach: String?
            let size: VimeoTree?
        }
        struct Privacy: Decodable { let view, embed, comments: String? }
        struct User: Decodable { let uri: String }
        let type, name, description, password, license, locale: String?
        let upload: Upload?
        let size: VimeoTree?
        let privacy: Privacy?
        let users: [User]?
    }

    private static let views = ["anybody", "contacts", "disable", "nobody", "password", "unlisted", "users"]

    static func read(_ body: [UInt8]) -> Result<Wish, Refusal> {
        guard let written = try? JSONDecoder().decode(Written.self, from: Data(body)) else {
            return .failure(Refusal(reply: refused(400, 2205, "the body is not well formed")))
        }
        var said: [String: String] = [:]
        said["name"] = written.name
        said["description"] = written.description
        said["password"] = written.password
        said["license"] = written.license
        said["view"] = written.privacy?.view
        said["embed"] = written.privacy?.embed
        said["users"] = written.users.map { $0.map(\.uri).joined(separator: ",") }
        func wrong(_ code: Int) -> Result<Wish, Refusal> {
            .failure(Refusal(reply: refused(400, 2204, "the parameters are not valid", field: ("privacy.view", code))))
        }
        if let view = written.privacy?.view {
            guard views.contains(view) else { return wrong(2232) }
            if view == "password", written.password?.isEmpty ?? true { return wrong(2233) }
            if view == "users", written.users?.isEmpty ?? true { return wrong(2244) }
        }
        // A size beside `upload` is that of a ticket, and says nothing of anything else.
        let size = written.upload == nil ? written.size : written.upload?.size
        return .success(
            Wish(
                type: written.type, approach: written.upload?.approach, size: size?.count, hasSize: size != nil,
                hasUpload: written.upload != nil, said: said))
    }
}
