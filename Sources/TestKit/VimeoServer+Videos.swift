internal import Core

// Videos: how a ticket becomes one, what is said of it, and its end.

extension VimeoServer {
    static func complete(_ number: Int?, _ signature: String?, _ state: inout State) -> Reply {
        guard let number, signature == "c\(number)",
            let index = state.uploads.firstIndex(where: { $0.number == number && $0.flow == .ticket })
        else {
            return refused(404, 8400, "bad signature")
        }
        if state.uploads[index].isVideo { return refused(404, 5006, "no such upload") }
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
                state.uploads[index].fields.merge(wish.said) { $1 }
                return Reply(status: 200, body: "{\"uri\": \"/videos/\(state.uploads[index].number)\"}")
            }
        default:
            let upload = state.uploads[index]
            var status = "uploading"
            if upload.isComplete {
                let states = state.behaviour.states
                status = states[min(upload.questions, states.count - 1)]
                state.uploads[index].questions += 1
            }
            let part = upload.isComplete ? "complete" : "in_progress"
            return Reply(
                status: 200,
                body: "{\"uri\": \"/videos/\(upload.number)\", \"link\": \"https://vimeo.example/\(upload.number)\", "
                    + "\"status\": \"\(status)\", \"upload\": {\"status\": \"\(part)\"}, "
                    + "\"metadata\": {\"connections\": {\"pictures\": {\"uri\": \"/videos/\(upload.number)/pictures\"}}}, "
                    + "\"transcode\": {\"status\": \"\(status == "available" ? "complete" : "in_progress")\"}}")
        }
    }
}
