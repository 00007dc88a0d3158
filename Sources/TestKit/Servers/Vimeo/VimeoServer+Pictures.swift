internal import Synchronization

// Thumbnails: created at the API, filled at the other host, and selected.

extension VimeoServer {
    package struct Picture: Sendable {
        package let number: Int
        /// The number of its video.
        package let video: Int
        package var bytes: [UInt8] = []
        package var mediaType = ""
        package var isActive = false
        package var isDeleted = false
        var uri: String { "/videos/\(video)/pictures/\(number)" }
    }

    package var pictures: [Picture] { state.withLock { $0.pictures.filter { !$0.isDeleted } } }

    static func pictureKind(_ method: String) -> Kind? {
        switch method {
        case "POST": .picture
        case "PATCH": .choice
        case "GET": .pictureQuestion
        case "DELETE": .pictureRemoval
        default: nil
        }
    }

    func picture(_ kind: Kind, _ path: String, _ body: [UInt8], _ state: inout State) -> Reply {
        let parts = path.split(separator: "/").map { Int($0) }
        guard parts.count >= 3, let video = parts[1],
            state.uploads.contains(where: { $0.number == video && $0.isVideo && !$0.isDeleted })
        else { return Self.refused(404, 5000, "the video was not found") }
        if kind == .picture {
            let number = state.pictures.count + 1
            state.pictures.append(Picture(number: number, video: video))
            return Reply(
                status: 201, headers: [("Content-Type", "application/vnd.vimeo.picture+json")],
                body: #"{"uri": "/videos/\#(video)/pictures/\#(number)", "active": false, "type": "custom", "#
                    + #""sizes": [], "resource_key": "k\#(number)", "link": "\#(pictureLink(number))"}"#)
        }
        guard parts.count == 4, let index = state.pictures.firstIndex(where: { $0.number == parts[3] && !$0.isDeleted })
        else { return Self.refused(404, 5000, "the picture was not found") }
        if kind == .pictureRemoval {
            state.pictures[index].isDeleted = true
            return Reply(status: 204)
        }
        if kind == .choice {
            // The service's own client sends the word as a text.
            let written = String(decoding: body, as: UTF8.self).filter { $0 != " " }
            guard written.contains("\"active\":true") || written.contains("\"active\":\"true\"") else {
                return Self.refused(400, 2204, "the parameters are not valid", field: ("active", 2204))
            }
            // A thumbnail without bytes cannot be shown.
            guard !state.pictures[index].bytes.isEmpty else {
                return Self.refused(400, 2204, "it has no image", field: ("active", 2204))
            }
            for other in state.pictures.indices where state.pictures[other].video == video {
                state.pictures[other].isActive = other == index
            }
        }
        let picture = state.pictures[index]
        return Reply(
            status: 200, headers: [("Content-Type", "application/vnd.vimeo.picture+json")],
            body: #"{"uri": "\#(picture.uri)", "active": \#(picture.isActive), "type": "custom", "#
                + #""sizes": [], "resource_key": "k\#(picture.number)"}"#)
    }

    /// `PUT` of an image to its link.
    func receivePicture(_ exchange: Exchange, _ number: Int) {
        change { $0.requests.append("image") }
        guard exchange.method == "PUT" else { return exchange.reply(405) }
        // The service's own client adds a parameter.
        guard exchange.target.split(separator: "?").last?.split(separator: "&").first == "signature=p\(number)",
            state.withLock({ state in state.pictures.contains { $0.number == number && !$0.isDeleted } })
        else { return exchange.reply(404) }
        let fault = next(.image)
        if case .answer(let status, let headers, let text)? = fault { return exchange.reply(status, headers, text) }
        if case .cut(let count)? = fault {
            _ = exchange.piece(count)
            return exchange.cut()
        }
        let body = exchange.body()
        let type = exchange.header("content-type") ?? ""
        change { state in
            state.pictures[number - 1].bytes = body
            state.pictures[number - 1].mediaType = type
        }
        if case .loseReply? = fault { return exchange.cut() }
        exchange.reply(200)
    }
}
