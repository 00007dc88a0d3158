internal import Core

// Videos: their creation from a ticket, their fields, and their removal.

extension VimeoServer {
    static func complete(_ number: Int?, _ query: [String: String], _ state: inout State) -> Reply {
        guard let signature = query["signature"] else { return refused(404, 5007, "no signature") }
        guard let number, query["video_file_id"] == "\(1000 + number)" else {
            return refused(404, 5006, "no such file")
        }
        guard signature == "c\(number)",
            let index = state.uploads.firstIndex(where: { $0.number == number && $0.flow == .ticket })
        else {
            return refused(404, 8400, "bad signature")
        }
        if state.uploads[index].isVideo || state.uploads[index].isExpired {
            return refused(404, 5006, "no such upload")
        }
        guard state.uploads[index].isComplete else { return refused(400, 2502, "the file is not valid") }
        state.uploads[index].isVideo = true
        state.uploads[index].created = state.now
        return Reply(status: 201, headers: [("Location", "/videos/\(state.uploads[index].number)")])
    }

    func video(_ kind: Kind, _ number: Int?, _ body: [UInt8], _ state: inout State) -> Reply {
        guard let index = state.uploads.firstIndex(where: { $0.number == number && $0.isVideo && !$0.isDeleted }) else {
            return Self.refused(404, 5000, "the video was not found")
        }
        switch kind {
        case .removal:
            state.uploads[index].isDeleted = true
            return Reply(status: 204)
        case .settings:
            switch Self.read(body) {
            case .failure(let refusal): return refusal.reply
            case .success(let wish):
                if let reply = Self.forbidden(wish, state.account) { return reply }
                state.uploads[index].fields.merge(wish.values) { $1 }
                return Reply(status: 200, body: shown(state.uploads[index], state))
            }
        default:
            // A video that is not public is visible to accounts that may see private ones.
            let view = state.uploads[index].fields["view"] ?? "anybody"
            guard view == "anybody" || state.account.scopes.contains("private") else {
                return Self.refused(404, 5000, "the video was not found")
            }
            let body = shown(state.uploads[index], state)
            if state.uploads[index].isComplete { state.uploads[index].questions += 1 }
            return Reply(status: 200, body: body)
        }
    }

    /// A video in the form of every answer: to its creation, to a change, to a query, and in the list.
    func shown(_ upload: Upload, _ state: State) -> String {
        let states = state.behaviour.states
        let status = upload.isComplete ? states[min(upload.questions, states.count - 1)] : "uploading"
        let transcode =
            switch status {
            case "available": "complete"
            case "transcoding_error": "error"
            default: "in_progress"
            }
        let name = Self.quoted(upload.fields["name"] ?? "Untitled")
        let view = Self.quoted(upload.fields["view"] ?? "anybody")
        let made = WallTime(milliseconds: upload.created ?? state.now).description.prefix { $0 != "." }
        let uri = "/videos/\(upload.number)"
        let isPlayable = status == "available"
        let part = self.part(upload, status, state.account)
        let fields = [
            #""uri": "\#(uri)", "name": \#(name), "link": "https://vimeo.example/\#(upload.number)""#,
            #""created_time": "\#(made)+00:00", "privacy": {"view": \#(view)}"#,
            #""status": "\#(status)", "is_playable": \#(isPlayable)"#,
            #""upload": \#(part), "transcode": {"status": "\#(transcode)"}"#,
            #""metadata": {"connections": {"pictures": {"uri": "\#(uri)/pictures"}}}"#,
        ]
        return "{\(fields.joined(separator: ", "))}"
    }

    /// The state of its bytes.
    private func part(_ upload: Upload, _ status: String, _ account: Account) -> String {
        // A video whose upload never ends.
        if upload.size == 0 { return "{}" }
        let stands =
            switch status {
            case "uploading": "in_progress"
            case "uploading_error": "error"
            default: "complete"
            }
        let approach = account.otherApproach ?? (upload.flow == .tus ? "tus" : "streaming")
        let hasLink = !account.hasNoLink && upload.flow != .ticket && !upload.isComplete
        let link = hasLink ? "\"\(self.link(upload.number))\"" : "null"
        return #"{"approach": "\#(approach)", "status": "\#(stands)", "size": \#(upload.size), "#
            + #""upload_link": \#(link), "complete_uri": null, "form": null, "link": null, "redirect_url": null}"#
    }
}
