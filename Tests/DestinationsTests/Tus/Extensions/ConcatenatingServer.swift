import Synchronization
import TestKit

/// A tus server with `concatenation`, `termination` and `expiration`: uploads at `/u0`, `/u1` …, of which a test may
/// look at and change everything.
final class ConcatenatingServer: Sendable {
    struct Upload {
        var held: [UInt8] = []
        var length: Int
        var concat: String?
        var metadata: String
        var exists = true
    }

    struct State {
        var uploads: [Upload] = []
        var extensions = "creation,termination,concatenation"
        /// Values of `Upload-Expires` in the answers to the next creations.
        var expires: [String] = []
        /// PATCH requests whose bytes are being received, and the largest number of them.
        var running = 0
        var mostRunning = 0
        var times: [String: Int] = [:]
        /// The joined upload has no bytes of its own, only the addresses of its parts.
        var keepsParts = false
        /// How often HEAD of a joined upload has no offset.
        var unfinishedLooks = 0
    }

    let state = Mutex(State())

    /// How often this was requested before, from 0.
    func time(_ what: String) -> Int {
        state.withLock { state in
            defer { state.times[what, default: 0] += 1 }
            return state.times[what, default: 0]
        }
    }

    var uploads: [Upload] { state.withLock { $0.uploads } }
    var partials: [Upload] { uploads.filter { $0.concat == "partial" } }
    var joined: [Upload] { uploads.filter { $0.concat?.hasPrefix("final") == true } }
    var whole: [Upload] { uploads.filter { $0.concat == nil } }

    func serve(_ exchange: Exchange) {
        switch exchange.method {
        case "OPTIONS":
            let extensions = state.withLock { $0.extensions }
            exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", extensions)])
        case "POST": create(exchange)
        case "HEAD": look(exchange)
        case "PATCH": patch(exchange)
        case "DELETE":
            let status = state.withLock { state in
                guard let index = Self.index(exchange), state.uploads.indices.contains(index),
                    state.uploads[index].exists
                else { return 404 }
                state.uploads[index].exists = false
                if state.keepsParts {
                    for other in state.uploads.indices where state.uploads[other].concat?.hasPrefix("final") == true {
                        state.uploads[other].exists = false
                    }
                }
                return 204
            }
            exchange.reply(status, [("Tus-Resumable", "1.0.0")])
        default: exchange.reply(405)
        }
    }

    private static func index(_ exchange: Exchange) -> Int? { Int(exchange.target.dropFirst(2)) }

    private func create(_ exchange: Exchange) {
        let concat = exchange.header("upload-concat")
        let answer: (Int, [(String, String)]) = state.withLock { state in
            var upload = Upload(
                length: exchange.header("upload-length").flatMap { Int($0) } ?? -1, concat: concat,
                metadata: exchange.header("upload-metadata") ?? "")
            if let concat, concat.hasPrefix("final;") {
                if upload.length >= 0 { return (400, []) }
                for word in concat.dropFirst(6).split(separator: " ") {
                    guard let index = Int(word.dropFirst(2)), state.uploads.indices.contains(index),
                        state.uploads[index].exists, state.uploads[index].concat == "partial",
                        state.uploads[index].held.count == state.uploads[index].length
                    else { return (400, []) }
                    upload.held += state.uploads[index].held
                }
                upload.length = upload.held.count
            }
            state.uploads.append(upload)
            let expiry = state.expires.isEmpty ? [] : [("Upload-Expires", state.expires.removeFirst())]
            return (201, [("Location", "/u\(state.uploads.count - 1)")] + expiry)
        }
        exchange.reply(answer.0, answer.1 + [("Tus-Resumable", "1.0.0")])
    }

    private func look(_ exchange: Exchange) {
        let answer: (Int, [(String, String)]) = state.withLock { state in
            guard let index = Self.index(exchange), state.uploads.indices.contains(index), state.uploads[index].exists
            else { return (404, []) }
            let upload = state.uploads[index]
            if upload.concat?.hasPrefix("final") == true, state.unfinishedLooks > 0 {
                state.unfinishedLooks -= 1
                return (200, [("Upload-Concat", upload.concat ?? "")])
            }
            return (
                200,
                [("Upload-Offset", "\(upload.held.count)"), ("Upload-Length", "\(upload.length)")]
            )
        }
        exchange.reply(answer.0, answer.1 + [("Tus-Resumable", "1.0.0")])
    }

    /// - Parameter count: How many bytes of the body are taken, where it is cut.
    func patch(_ exchange: Exchange, taking count: Int = .max) {
        state.withLock { state in
            state.running += 1
            state.mostRunning = max(state.mostRunning, state.running)
        }
        let body = exchange.body(count)
        let answer: (Int, [(String, String)]) = state.withLock { state in
            state.running -= 1
            guard let index = Self.index(exchange), state.uploads.indices.contains(index), state.uploads[index].exists
            else { return (404, []) }
            guard state.uploads[index].concat?.hasPrefix("final") != true else { return (403, []) }
            guard exchange.header("upload-offset") == "\(state.uploads[index].held.count)" else { return (409, []) }
            state.uploads[index].held += body
            return (204, [("Upload-Offset", "\(state.uploads[index].held.count)")])
        }
        if count < .max { return exchange.cut() }
        exchange.reply(answer.0, answer.1 + [("Tus-Resumable", "1.0.0")])
    }
}
