import Synchronization
import TestKit

/// A tus server with one upload at `/u`, whose answers a test replaces.
final class ScriptedTusServer: Sendable {
    struct State {
        var held: [UInt8] = []
        var length: Int64 = 0
        var exists = false
        /// HEAD names no length.
        var isDeferred = false
        var times: [String: Int] = [:]
    }

    let state = Mutex(State())

    /// How often this was requested before, from 0.
    func time(_ what: String) -> Int {
        state.withLock { state in
            defer { state.times[what, default: 0] += 1 }
            return state.times[what, default: 0]
        }
    }

    /// - Parameter method: The method that `X-HTTP-Method-Override` names, for a server that obeys it.
    func serve(_ exchange: Exchange, as method: String? = nil) {
        switch method ?? exchange.method {
        case "OPTIONS":
            exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination")])
        case "POST":
            state.withLock { state in
                state.held = []
                state.length = exchange.header("upload-length").flatMap { Int64($0) } ?? -1
                state.exists = true
            }
            exchange.reply(201, [("Location", "/u"), ("Tus-Resumable", "1.0.0")])
        case "HEAD":
            let (held, length, exists, isDeferred) = state.withLock {
                ($0.held.count, $0.length, $0.exists, $0.isDeferred)
            }
            if !exists { return exchange.reply(404, [("Tus-Resumable", "1.0.0")]) }
            let named = isDeferred ? ("Upload-Defer-Length", "1") : ("Upload-Length", "\(length)")
            exchange.reply(200, [("Upload-Offset", "\(held)"), named])
        case "PATCH":
            let body = exchange.body()
            let offset = exchange.header("upload-offset").flatMap { Int($0) } ?? -1
            let now: Int? = state.withLock { state in
                guard state.held.count == offset else { return nil }
                state.held += body
                return state.held.count
            }
            guard let now else { return exchange.reply(409) }
            exchange.reply(204, [("Upload-Offset", "\(now)")])
        case "DELETE":
            state.withLock { $0.exists = false }
            exchange.reply(204)
        default: exchange.reply(405)
        }
    }

    var held: [UInt8] { state.withLock { $0.held } }
}

/// The requests of an upload in order, without OPTIONS.
func verbs(_ server: FakeServer) -> [String] {
    server.seen.map { String($0.prefix { $0 != " " }) }.filter { $0 != "OPTIONS" }
}
