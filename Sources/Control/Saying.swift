internal import Core
internal import Daemon
internal import WebServer

/// What a person has changed, in words for the log: nothing happens to an upload of which no line tells.
struct Saying: Hashable, Sendable {
    let verb: String
    let what: String

    /// `nil` for what changes nothing, and what the daemon tells of by itself.
    ///
    /// - Parameter body: Of a request that was understood.
    init?(_ route: Route, _ request: WebRequest, body: [UInt8]) {
        // It was read before: what cannot be read was refused, and what is not there is what stands for nothing.
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
        case .list, .show, .why, .plan, .allow, .limit, .status, .metrics, .usage, .quota, .events, .reload, .rescan,
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
