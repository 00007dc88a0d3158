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

    func create(_ body: [UInt8], _ state: inout State) -> Reply {
        let wish: Wish
        switch Self.read(body) {
        case .failure(let refusal): return refusal.reply
        case .success(let read): wish = read
        }
        let account = state.account
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
        guard let size = wish.size, size >= 0 else {
            return Self.refused(400, 2204, "the parameters are not valid", field: ("size", 2254))
        }
        if let quota = account.quota {
            if quota.isCount, quota.free < 1 { return Self.refused(403, 4104, "the count of videos is reached") }
            if !quota.isCount, quota.free < size { return Self.refused(403, 4102, "the quota is reached") }
        }
        if size > account.largest { return Self.refused(403, 3428, "the file is larger than the quota") }
        let flow: Upload.Flow = wish.type != nil ? .ticket : wish.approach == "tus" ? .tus : .streaming
        let number = state.uploads.count + 1
        state.uploads.append(
            Upload(number: number, flow: flow, size: size, isVideo: flow != .ticket, fields: wish.said))
        if flow == .ticket {
            return Reply(
                status: 201,
                body: "{\"uri\": \"/users/1/uploads/\(number)\", \"ticket_id\": \"t\(number)\", "
                    + "\"upload_link_secure\": \"\(link(number))\", \"complete_uri\": \"/users/1/uploads/\(number)?signature=c\(number)\"}"
            )
        }
        let approach = account.otherApproach ?? wish.approach ?? ""
        let link = account.hasNoLink ? "null" : "\"\(link(number))\""
        // The trap: a video that never ends.
        let upload =
            size == 0
            ? "{}"
            : "{\"approach\": \"\(approach)\", \"status\": \"in_progress\", \"size\": \(size), \"upload_link\": \(link)}"
        return Reply(
            status: state.behaviour.created,
            body:
                "{\"uri\": \"/videos/\(number)\", \"name\": \"Untitled\", \"link\": \"https://vimeo.example/\(number)\", \"upload\": \(upload)}"
        )
    }

    struct Refusal: Error { let reply: Reply }

    struct Wish {
        var type: String?
        var approach: String?
        var size: Int64?
        var said: [String: String]
    }

    private struct Written: Decodable {
        struct Upload: Decodable {
            let approach: String?
            let size: Int64?
        }
        struct Privacy: Decodable { let view, embed, comments: String? }
        struct User: Decodable { let uri: String }
        let type, name, description, password, license, locale: String?
        let upload: Upload?
        let size: Int64?
        let privacy: Privacy?
        let users: [User]?
    }

    private static let views = ["anybody", "contacts", "disable", "nobody", "password", "unlisted", "users"]

    static func read(_ body: [UInt8]) -> Result<Wish, Refusal> {
        guard let written = try? JSONDecoder().decode(Written.self, from: Data(body)) else {
            return .failure(Refusal(reply: refused(400, 2205, "the body is not well formed")))
        }
        if written.type != nil, written.upload != nil {
            return .failure(Refusal(reply: refused(400, 3116, "type is not of this version")))
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
        return .success(
            Wish(
                type: written.type, approach: written.upload?.approach, size: written.upload?.size ?? written.size,
                said: said))
    }
}
