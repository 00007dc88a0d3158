internal import FoundationEssentials

// The fields of a video, and the refused values. The numbers are those of the service's own libraries.

extension VimeoServer {
    private static let views = ["anybody", "contacts", "disable", "nobody", "password", "unlisted", "users"]
    private static let embeds = ["private", "public", "whitelist"]
    private static let comments = ["anybody", "contacts", "nobody"]
    private static let licenses = ["by", "by-nc", "by-nc-nd", "by-nc-sa", "by-nd", "by-sa", "cc0"]

    static func read(_ body: [UInt8]) -> Result<RequestedUpload, Refusal> {
        guard let tree = try? JSONDecoder().decode(VimeoTree.self, from: Data(body)), case .object = tree else {
            return .failure(Refusal(reply: refused(400, 2205, "the body is not well formed")))
        }
        if let wrong = wrongWord(tree) ?? wrongPrivacy(tree) ?? wrongUsers(tree) {
            return .failure(Refusal(reply: refused(400, 2204, "the parameters are not valid", field: wrong)))
        }
        // A size beside `upload` belongs to a ticket, and has no other meaning.
        let (upload, type) = (tree["upload"], tree["type"])
        let size = upload == nil ? tree["size"] : upload?["size"]
        return .success(
            RequestedUpload(
                type: type.map { $0.text ?? "" }, approach: upload?["approach"]?.text, size: size?.count,
                hasSize: size != nil, hasUpload: upload != nil, values: said(tree)))
    }

    /// The error for values of `privacy.view` that this account may not use.
    static func forbidden(_ wish: RequestedUpload, _ account: Account) -> Reply? {
        guard let view = wish.values["view"], account.forbiddenViews.contains(view) else { return nil }
        let code = ["users": 2410, "disable": 2411, "contacts": 2412][view] ?? 2409
        return refused(403, code, "this account may not set the privacy \(view)")
    }

    private static func said(_ tree: VimeoTree) -> [String: String] {
        var said: [String: String] = [:]
        for name in ["name", "description", "password", "license", "locale", "folder_uri"] {
            said[name] = tree[name]?.text
        }
        for name in ["view", "embed", "comments", "download", "add"] { said[name] = tree["privacy"]?[name]?.word }
        if let view = tree["privacy"]?.text {
            // A single word instead of the object: it is accepted, and the password with it is lost.
            said["view"] = view
            said["password"] = nil
        }
        said["content_rating"] = tree["content_rating"]?.items.compactMap(\.text).joined(separator: ",")
        said["users"] = tree["users"]?.items.compactMap { $0["uri"]?.text }.joined(separator: ",")
        return said
    }

    private static func wrongWord(_ tree: VimeoTree) -> (String, Int)? {
        for (name, code) in [("name", 2252), ("description", 2249), ("locale", 2235)]
        where tree[name] != nil && tree[name]?.text == nil {
            return (name, code)
        }
        if let license = tree["license"], !licenses.contains(license.text ?? "") { return ("license", 2234) }
        if let ratings = tree["content_rating"] {
            guard case .list(let items) = ratings, items.allSatisfy({ $0.text != nil }) else {
                return ("content_rating", 2259)
            }
        }
        return nil
    }

    private static func wrongPrivacy(_ tree: VimeoTree) -> (String, Int)? {
        guard let privacy = tree["privacy"] else { return nil }
        if let view = privacy.text { return views.contains(view) ? nil : ("privacy.view", 2232) }
        for (name, words, code) in [("view", views, 2232), ("embed", embeds, 2239), ("comments", comments, 2240)] {
            if let word = privacy[name], !words.contains(word.text ?? "") { return ("privacy.\(name)", code) }
        }
        for (name, code) in [("download", 2238), ("add", 2237)] {
            if let flag = privacy[name], flag.flag == nil { return ("privacy.\(name)", code) }
        }
        if privacy["view"]?.text == "password" {
            guard let password = tree["password"]?.text else { return ("privacy.view", 2233) }
            if password.isEmpty { return ("password", 2273) }
        }
        return nil
    }

    private static func wrongUsers(_ tree: VimeoTree) -> (String, Int)? {
        let view = tree["privacy"]?.text ?? tree["privacy"]?["view"]?.text
        guard let users = tree["users"] else { return view == "users" ? ("privacy.view", 2244) : nil }
        guard let view else { return ("users", 2247) }
        if view != "users" { return ("users", 2248) }
        if users.items.isEmpty { return ("users", 2245) }
        for user in users.items {
            guard let uri = user["uri"]?.text else { return ("users", 2242) }
            if !uri.hasPrefix("/users/") { return ("users", 2241) }
        }
        return nil
    }
}
