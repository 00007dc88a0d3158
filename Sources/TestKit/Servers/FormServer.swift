package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// A loopback server that takes files as chunked forms, in the manner of one preset, and checks every rule of it.
///
/// Keeps blocks in memory. A complete file is stored below its folder, and an incomplete one there as `.ID.part`.
package final class FormServer: Sendable {
    /// Deliberate faults. Counts go down as they are used.
    package struct Faults: Sendable {
        /// Blocks, from 1, whose first answer is lost after they were stored.
        package var lostAnswers: Set<Int> = []
        package var lostOpenings = 0
        package var lostFinishes = 0
        package var refusals: (status: Int, times: Int, retryAfter: Int?)?
        /// The number of answers with status 200 and an error in the body.
        package var errorsIn200 = 0
        /// The number of answers that are invalid JSON, and of those that are a login page; nothing is stored.
        package var garbled = 0
        package var pages = 0
        /// The answers to the next removals, which are not done: a status, or 0 for no answer.
        package var aborts: [Int] = []
        /// The upload is forgotten after a number of blocks, a number of times.
        package var forgets: (after: Int, times: Int)?
        package var forgetsFinished = false
        package var omitsURL = false
        /// The number of answers to a last block that have no URL.
        package var lateURLs = 0
        package var earlyURL: Int?
        /// The connection is cut in this block, after a number of bytes of the body.
        package var cut: (block: Int, bytes: Int)?
        /// `reset: true` in the answer to this block, once.
        package var reset: Int?
        package var newID: String?
        /// The number of next blocks in which one byte is changed.
        package var damaged = 0
        /// Microseconds between two reads.
        package var readPause: UInt32 = 0
        /// With `readPause`: whether nothing more is read, until this is false or the peer closes.
        package var isStuck = false
        package init() {}
    }

    struct Upload {
        var blocks: [Int: [UInt8]] = [:]
        var total: Int64?
        var count: Int?
        var name: FilePath
        var url: String?
        /// For a server that appends.
        var appended: [UInt8] = []
        var acceptedBlocks = 0
        var suffix = ""
        /// The size of a block according to the first request.
        var nominal: Int64?
    }

    struct State {
        var uploads: [String: Upload] = [:]
        var faults = Faults()
        var requests: [String] = []
        var refused: [String] = []
        var resumes: [Int] = []
        var together = 0
        var maxConcurrent = 0
        var made = 0
        var received: Int64 = 0
    }

    /// Options of a test besides the preset.
    package struct Options: Sendable {
        /// The size of a block, for forms that do not state it.
        package var block: Int64 = 1000
        /// The maximum size of a body.
        package var limit = 64 << 20
        /// Whether the upload ends with `POST /finish` instead of its last block.
        package var wantsFinish = false
        /// Headers that each request must have, in lower case.
        package var headers: [String: String] = [:]
        /// The `token` of every form.
        package var token = ""
        package init() {}
    }

    package let preset: String
    package let folder: FilePath
    let options: Options
    let rules: FormRules
    let state = Mutex(State())
    private let server = Mutex<FakeServer?>(nil)
    package let url: String

    package struct UnknownPreset: Error {}

    package init(_ preset: String, into folder: FilePath, _ options: Options = Options()) throws {
        guard let rules = FormRules.of(preset) else { throw UnknownPreset() }
        self.preset = preset
        self.folder = folder
        self.options = options
        self.rules = rules
        let shared = Relay()
        let server = try FakeServer { exchange in try shared.server.withLock { $0.value }?.serve(exchange) }
        url = server.url + "/upload"
        shared.server.withLock { $0.value = self }
        self.server.withLock { $0 = server }
    }

    /// Breaks the reference cycle of the two: the closure must not keep its owner.
    private final class Relay: Sendable {
        struct Weak { weak var value: FormServer? }
        let server = Mutex(Weak())
    }

    package func stop() { server.withLock { $0?.stop() } }

    package var connectionCount: Int { server.withLock { $0?.connectionCount ?? 0 } }
    package func set(_ change: (inout Faults) -> Void) { state.withLock { change(&$0.faults) } }
    /// `open`, `block 1`, `probe 2`, `finish`, `abort`, in their order.
    package var requests: [String] { state.withLock { $0.requests } }
    /// Bytes of all bodies, including those that were cut.
    package var received: Int64 { state.withLock { $0.received } }
    /// The rules that refused requests have broken.
    package var refused: [String] { state.withLock { $0.refused } }
    /// Blocks, from 1, that were marked as the first since a restart.
    package var resumes: [Int] { state.withLock { $0.resumes } }
    /// The most blocks that were being received at the same time.
    package var maxConcurrent: Int { state.withLock { $0.maxConcurrent } }
    /// Blocks that it is reading now, or storing.
    package var underWay: Int { state.withLock { $0.together } }
    /// Uploads that are begun and not complete.
    package var unfinished: Int { state.withLock { $0.uploads.values.count { $0.url == nil } } }
    package var ids: [String] { state.withLock { $0.uploads.keys.sorted() } }

    // MARK: Serving

    private func serve(_ exchange: Exchange) throws {
        do {
            if exchange.header("transfer-encoding") != nil { throw FormRefusal(status: 411, reason: "chunked") }
            for (name, value) in options.headers.merging(rules.headers, uniquingKeysWith: { mine, _ in mine })
            where exchange.method != "OPTIONS" && exchange.header(name) != value {
                throw FormRefusal(status: name == "authorization" ? 401 : 400, reason: "the header \(name)")
            }
            let target = exchange.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            let query = target.count > 1 ? String(target[1]) : ""
            switch (exchange.method, String(target.first ?? "")) {
            case ("OPTIONS", _): exchange.reply(204)
            case ("GET", "/upload") where rules.isProbed: try probe(exchange, query)
            case ("POST", "/upload"): try receiveBlock(exchange, query)
            case ("POST", "/finish"): try finish(exchange)
            case ("POST", "/abort"): try abort(exchange)
            default: throw FormRefusal(status: 404, reason: "\(exchange.method) \(exchange.target)")
            }
        } catch let refusal as FormRefusal {
            state.withLock { $0.refused.append(refusal.reason) }
            exchange.reply(refusal.status, [("Content-Type", "text/plain")], refusal.reason)
        } catch let objection as MultipartForm.Objection {
            state.withLock { $0.refused.append(objection.description) }
            exchange.reply(400, [("Content-Type", "text/plain")], objection.description)
        }
    }

    private func probe(_ exchange: Exchange, _ query: String) throws {
        let fields = try Self.pairs(query)
        let length = fields[rules.length ?? ""].flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
        let block = try rules.block(fields, filename: [], size: length, block: options.block)
        let isHere = state.withLock { state in
            state.requests.append("probe \(block.index + 1)")
            let upload = state.uploads[block.id]
            return upload?.url != nil || upload?.blocks[block.index] != nil
        }
        exchange.reply(isHere ? 200 : 204)
    }

    private func receiveBlock(_ exchange: Exchange, _ query: String) throws {
        guard let length = exchange.header("content-length").flatMap({ Int($0) }) else {
            throw FormRefusal(status: 411, reason: "no length")
        }
        guard length <= options.limit else { throw FormRefusal(status: 413, reason: "\(length) B") }
        if try refuse(exchange) { return }
        state.withLock { state in
            state.together += 1
            state.maxConcurrent = max(state.maxConcurrent, state.together)
        }
        defer { state.withLock { $0.together -= 1 } }
        let body: [UInt8]
        do { body = try read(exchange, length) } catch is Cut { return }
        state.withLock { $0.received += Int64(body.count) }
        guard body.count == length else {
            exchange.cut()
            return
        }
        let form = try MultipartForm(body, contentType: exchange.header("content-type"))
        var fields: [String: [UInt8]] = [:]
        for part in form.parts where part.filename == nil { fields[part.name] = part.body }
        guard let file = form.file.map(Self.named), file.name == rules.part,
            file.contentType == "application/octet-stream"
        else {
            throw FormRefusal(status: 400, reason: "no part \(rules.part)")
        }
        if rules.inQuery {
            guard try Self.pairs(query) == fields else { throw FormRefusal(status: 400, reason: "the query differs") }
        }
        if preset == "breakpoint", try open(exchange, fields, file) { return }
        try store(exchange, fields, file)
    }

    /// The part with its file name decoded from the form in which browsers write it into a header.
    private static func named(_ part: MultipartForm.Part) -> MultipartForm.Part {
        var part = part
        part.filename = part.filename.map(plain)
        return part
    }

    static func plain(_ name: [UInt8]) -> [UInt8] {
        var plain: [UInt8] = []
        var rest = name[...]
        while let byte = rest.popFirst() {
            let codes: [String: UInt8] = ["22": 0x22, "0D": 0x0D, "0A": 0x0A]
            let code = byte == UInt8(ascii: "%") ? codes[String(decoding: rest.prefix(2), as: UTF8.self)] : nil
            plain.append(code ?? byte)
            if code != nil { rest = rest.dropFirst(2) }
        }
        return plain
    }

    private struct Cut: Error {}

    private func read(_ exchange: Exchange, _ length: Int) throws -> [UInt8] {
        let (pause, cut) = state.withLock { ($0.faults.readPause, $0.faults.cut) }
        if let cut, state.withLock({ $0.requests.count(where: { $0.hasPrefix("block") }) }) + 1 == cut.block {
            state.withLock { $0.faults.cut = nil }
            _ = exchange.body(cut.bytes)
            exchange.cut(reset: true)
            throw Cut()
        }
        if pause == 0 { return exchange.body(length) }
        var body: [UInt8] = []
        while body.count < length {
            let more = exchange.piece(16 << 10)
            if more.isEmpty { break }
            body += more
            usleep(pause)
            exchange.hold { state.withLock { !$0.faults.isStuck } }
        }
        return body
    }

    /// Whether a fault answers instead of the server.
    private func refuse(_ exchange: Exchange) throws -> Bool {
        enum Instead { case status(Int, Int?), text(String) }
        let instead = state.withLock { state -> Instead? in
            if let refusal = state.faults.refusals, refusal.times > 0 {
                state.faults.refusals?.times -= 1
                return .status(refusal.status, refusal.retryAfter)
            }
            if state.faults.errorsIn200 > 0 {
                state.faults.errorsIn200 -= 1
                return .text(
                    #"{"success":false,"jsonrpc":"2.0","error":{"code":101,"message":"Failed to open input stream."},"id":"id"}"#
                )
            }
            if state.faults.garbled > 0 {
                state.faults.garbled -= 1
                return .text("{\"data\": ")
            }
            if state.faults.pages > 0 {
                state.faults.pages -= 1
                return .text("<!DOCTYPE html><html>Please log in</html>")
            }
            return nil
        }
        guard let instead else { return false }
        _ = exchange.body()
        switch instead {
        case .status(let status, let wait):
            exchange.reply(status, wait.map { [("Retry-After", "\($0)")] } ?? [], "not now")
        case .text(let text): exchange.reply(200, [("Content-Type", "text/html")], text)
        }
        return true
    }

    static func pairs(_ query: String) throws -> [String: [UInt8]] {
        var pairs: [String: [UInt8]] = [:]
        for pair in query.split(separator: "&") {
            let cut = pair.firstIndex(of: "=") ?? pair.endIndex
            guard let name = PercentCoding.text(decoding: pair[..<cut]),
                let value = PercentCoding.bytes(decoding: pair[cut...].dropFirst()), pairs[name] == nil
            else { throw FormRefusal(status: 400, reason: "the query \(query)") }
            pairs[name] = value
        }
        return pairs
    }
}
