internal import API
internal import Core
internal import WebServer

/// Describes a person's change for the log: every such change of an upload is logged.
struct AuditEntry: Hashable, Sendable {
    let verb: String
    let what: String

    /// `nil` for a request without a change, and for a change that the daemon logs itself.
    ///
    /// - Parameter body: The body of a valid request.
    init?(_ route: APIRoute, _ request: WebRequest, body: [UInt8]) {
        // It was decoded before: an invalid body was refused, and an empty one has a default meaning.
        func read<T: Decodable>(_ type: T.Type) -> T? { try? JSON.value(type, from: body) }
        switch route {
        case .add:
            let path = read(AddRequest.self)?.path ?? ""
            (verb, what) = ("add", bytes(hexadecimal: path).map { FilePath(bytes: $0).display } ?? path)
        case .receive: (verb, what) = ("add", "bytes as " + printable(request.query["name"] ?? ""))
        case .actOn(let reference, let act): (verb, what) = (act.rawValue, reference)
        case .act(let act): (verb, what) = (act.rawValue, Self.words(read(Selection.self) ?? Selection()))
        case .remove(let reference): (verb, what) = ("remove", reference)
        case .acceptFolder(let name): (verb, what) = ("folder accept", name)
        case .flush:
            let request = read(FlushRequest.self) ?? FlushRequest()
            let place = Selection(folder: request.folder, destination: request.destination)
            (verb, what) = ("flush", (request.list.map { $0 + ": " } ?? "") + Self.words(place))
        case .trace(let name):
            // Only its beginning: the rest fetches what was recorded.
            guard read(TraceRequest.self)?.after == nil else { return nil }
            (verb, what) = ("trace", name)
        case .reload: (verb, what) = ("reload", "configuration")
        case .rescan:
            (verb, what) = ("rescan", read(RescanRequest.self)?.folder.map { "folder \($0)" } ?? "all folders")
        case .webLink: (verb, what) = ("web", "link to sign in")
        case .session, .signIn, .signOut, .list, .show, .why, .thumbnail, .plan, .routes, .failures, .allow, .limit,
            .setUsage,
            .status,
            .metrics,
            .usage, .quota, .events,
            .check, .remote, .orphans, .tryHook:
            return nil
        }
    }

    private static func words(_ selection: Selection) -> String {
        if let folder = selection.folder { return "folder \(folder)" }
        if let destination = selection.destination { return "destination \(destination)" }
        if selection.ids.isEmpty { return "everything" }
        let more = selection.ids.count - 5
        return selection.ids.prefix(5).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    }
}
