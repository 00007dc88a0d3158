package import Core
internal import Linux
internal import Synchronization

/// A loopback server of the draft "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload), written from its
/// text. It checks every rule for a client, and has the faults that a test asks for.
///
/// Uploads are created by POST to `/files`, and have addresses below `/u/`. Bytes are kept as they arrive, so a cut
/// request leaves those that came.
package final class ResumableServer: Sendable {
    /// How it writes its answers, within the freedom of the drafts.
    package enum Style: Sendable {
        /// Draft -12: no offset in the answer to an append; `Upload-Complete` says whether the upload is complete.
        case draft
        /// As tusd 2.10 was seen to answer: an offset, and no `Upload-Complete`. Conflicts are plain text. An upload is
        /// complete when its offset is its length, whatever the request said.
        case tusd
        /// As the source of swift-nio-extras answers in version 6: a final answer has `Upload-Incomplete: ?0`, a conflict
        /// destroys the upload, a version that it does not speak is refused with 400 and its own version, and a finished
        /// upload is gone.
        case swiftNIO
        /// Headers that no draft requires are left out.
        case terse
    }

    /// What it does with a request in a version that it does not speak.
    package enum Mismatch: Sendable {
        case refuse(Int, String, [(String, String)] = [])
        /// It is an ordinary request to the target: the body is stored as a file.
        case ordinary
    }

    package enum Fault: Sendable {
        case none
        /// The connection ends before the body is read.
        case drop
        /// The connection ends after so many bytes of the body, which are kept.
        case cut(Int)
        /// The work is done, and the connection ends before the answer.
        case lostAnswer
        /// The answer without the work.
        case answer(Int, [(String, String)] = [], String = "")
        /// So many bytes of the body are kept, and the answer is a success.
        case partial(Int)
        /// The upload is forgotten before the request is looked at.
        case forget
    }

    package struct Options: Sendable {
        /// Values of `Upload-Draft-Interop-Version` that it speaks; an empty text for requests without the header.
        package var versions: Set<String> = ["9"]
        package var mismatch = Mismatch.refuse(412, "")
        package var style = Style.draft
        /// Whether OPTIONS announces resumable uploads.
        package var isAnnounced = true
        /// Whether OPTIONS in a version that it does not speak is refused too.
        package var refusesOptions = false
        /// The value of `Upload-Limit`.
        package var limits = "max-size=1000000000"
        /// Whether answers about one upload have it too.
        package var namesLimits = true
        package var maxAppend = Int.max
        package var minAppend = 0
        /// Whether interim answers (104) are sent: one before each body, and one after each `interimEvery` bytes.
        package var interimEvery: Int?
        /// Whether the address of a finished upload can still be asked.
        package var keepsFinished = true
        /// The answer of the target to a finished upload.
        package var final: (status: Int, headers: [(String, String)], body: String) = (200, [], "")
        /// Where finished files are written, by their names.
        package var folder: FilePath?
        package init() {}
    }

    package struct Upload: Sendable {
        package var name: String?
        package var type: String?
        package var version = ""
        package var length: Int?
        package var held: [UInt8] = []
        package var isComplete = false
        var isOpen = false
        package init() {}
    }

    private let server: FakeServer
    private let store: ResumableStore
    package var port: Int { server.port }
    package var url: String { "\(server.url)/files" }

    package init(_ options: Options = Options()) throws {
        let store = ResumableStore(options)
        self.store = store
        server = try FakeServer { store.serve($0) }
    }

    package func stop() { server.stop() }

    package func change(_ change: (inout Options) -> Void) { store.state.withLock { change(&$0.options) } }

    /// The faults of the next requests with this method, in their order.
    package func plan(_ method: String, _ faults: Fault...) { store.state.withLock { $0.plan[method] = faults } }

    /// From now on, about half of the answers are damaged ones of `mutator`, and nothing is done for them.
    package func damage(_ mutator: Mutator, _ dice: Dice) {
        store.state.withLock {
            $0.mutator = mutator
            $0.dice = dice
        }
    }

    /// Whether a damaged answer said that an upload is complete, or that so many bytes are there.
    package func saidComplete(_ size: Int) -> Bool {
        let lies = store.state.withLock { $0.lies }
        return String(decoding: lies, as: UTF8.self).lowercased().split(whereSeparator: \.isNewline).contains { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return false }
            let value = parts[1].filter { !$0.isWhitespace }
            return parts[0].hasSuffix("upload-complete") && value.hasPrefix("?1")
                || parts[0].hasSuffix("upload-incomplete") && value.hasPrefix("?0")
                || parts[0].hasSuffix("upload-offset") && value.drop { $0 == "0" }.hasPrefix("\(size)")
        }
    }

    // MARK: What it has seen

    /// `POST ?0`, `HEAD`, `PATCH 400 ?1 600`: method, offset, `Upload-Complete` and the size of the body, without
    /// OPTIONS.
    package var requests: [String] { store.state.withLock { $0.requests.filter { !$0.hasPrefix("OPTIONS") } } }
    package var all: [String] { store.state.withLock { $0.requests } }
    package func forgetRequests() { store.state.withLock { $0.requests = [] } }
    /// Rules of the draft that the client has broken.
    package var violations: [String] { store.state.withLock { $0.violations } }
    package var uploads: [Upload] { store.state.withLock { $0.uploads.sorted { $0.key < $1.key }.map(\.value) } }
    /// Contents of finished files, in the order of their ends.
    package var finished: [[UInt8]] { store.state.withLock { $0.finished } }
    /// Files that ordinary requests have made.
    package var ordinary: Int { store.state.withLock { $0.ordinary } }
    package var removed: Int { store.state.withLock { $0.removed } }
    package func set(_ path: String, _ upload: Upload) { store.state.withLock { $0.uploads[path] = upload } }
}

/// What a ``ResumableServer`` holds and has seen.
final class ResumableStore: Sendable {
    struct State {
        var options: ResumableServer.Options
        var uploads: [String: ResumableServer.Upload] = [:]
        var plan: [String: [ResumableServer.Fault]] = [:]
        var requests: [String] = []
        var violations: [String] = []
        var ordinary = 0
        var removed = 0
        var finished: [[UInt8]] = []
        var made = 0
        var mutator: Mutator?
        var dice = Dice(seed: 0)
        var lies: [UInt8] = []
    }

    let state: Mutex<State>

    init(_ options: ResumableServer.Options) { state = Mutex(State(options: options)) }

    func serve(_ exchange: Exchange) {
        let flag = exchange.header("upload-complete")
        let words = [
            exchange.method, exchange.header("upload-offset"), flag,
            exchange.method == "PATCH" ? exchange.header("content-length") : nil,
        ]
        let (options, fault, lie) = state.withLock { state in
            state.requests.append(words.compactMap { $0 }.joined(separator: " "))
            let fault = state.plan[exchange.method]?.isEmpty == false ? state.plan[exchange.method]?.removeFirst() : nil
            var lie: [UInt8]?
            if let mutator = state.mutator, Bool.random(using: &state.dice) {
                let reply = mutator.text(&state.dice)
                state.lies += reply + [UInt8(ascii: "\n")]
                lie = reply
            }
            return (state.options, fault ?? .none, lie)
        }
        switch fault {
        case .drop: return exchange.cut()
        case .answer(let status, let headers, let body):
            _ = exchange.body()
            return exchange.reply(status, headers, body)
        case .forget: state.withLock { $0.uploads[exchange.target] = nil }
        case .none, .cut, .lostAnswer, .partial: break
        }
        if let lie {
            _ = exchange.body()
            exchange.answer(lie)
            return exchange.cut()
        }
        let version = exchange.header("upload-draft-interop-version") ?? ""
        if exchange.method == "OPTIONS", options.versions.contains(version) || !options.refusesOptions {
            return exchange.reply(
                204, options.isAnnounced && options.versions.contains(version) ? announcement(options) : [])
        }
        guard options.versions.contains(version) else { return mismatched(exchange, options) }
        ResumableRules(exchange: exchange, options: options).violations.forEach { note($0) }
        let request = ResumableRequest(exchange: exchange, options: options, fault: fault, store: self)
        switch exchange.method {
        case "POST": request.create(version)
        case "HEAD": request.look()
        case "PATCH": request.append()
        case "DELETE": request.remove()
        default: exchange.reply(405)
        }
    }

    private func announcement(_ options: ResumableServer.Options) -> [(String, String)] {
        switch options.style {
        case .draft: [("Accept-Patch", "application/partial-upload"), ("Upload-Limit", options.limits)]
        case .tusd: [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Upload-Limit", options.limits)]
        case .swiftNIO: [("Upload-Limit", "min-size=0"), ("Upload-Draft-Interop-Version", "6")]
        case .terse: [("Accept-Patch", "application/partial-upload")]
        }
    }

    private func mismatched(_ exchange: Exchange, _ options: ResumableServer.Options) {
        let body = exchange.body()
        switch options.mismatch {
        case .refuse(let status, let words, let headers): exchange.reply(status, headers, words)
        case .ordinary where exchange.method == "POST":
            state.withLock {
                $0.ordinary += 1
                $0.finished.append(body)
            }
            exchange.reply(201, [("Location", "/ordinary")])
        case .ordinary: exchange.reply(exchange.method == "PATCH" ? 405 : 200)
        }
    }

    func note(_ violation: String) { state.withLock { $0.violations.append(violation) } }
}

/// The rules for a client's requests.
struct ResumableRules {
    let exchange: Exchange
    let options: ResumableServer.Options

    /// Those that this request breaks.
    var violations: [String] {
        var broken: [String] = []
        func require(_ holds: Bool, _ rule: String) { if !holds { broken.append("\(exchange.method): \(rule)") } }
        let flag = exchange.header("upload-complete")
        let count = exchange.header("content-length").flatMap { Int($0) } ?? 0
        require(exchange.header("tus-resumable") == nil, "a header of tus")
        require(exchange.header("transfer-encoding") == nil, "a body of unknown length")
        switch exchange.method {
        case "POST":
            require(flag == "?0" || flag == "?1", "no Upload-Complete")
            require(exchange.header("upload-offset") == nil, "Upload-Offset in a creation")
            require(exchange.header("upload-length").flatMap { Int($0) } != nil, "no Upload-Length")
            require(count == 0, "a body in a careful creation")
            require((flag == "?1") == (exchange.header("upload-length") == "0"), "an empty file completes at once")
            require(exchange.header("content-type") != nil, "no Content-Type")
            require(exchange.header("content-disposition")?.hasPrefix("inline; filename=\"") == true, "no filename")
        case "PATCH":
            require(flag == "?0" || flag == "?1", "no Upload-Complete")
            require(exchange.header("upload-offset").flatMap { Int($0) } != nil, "no Upload-Offset")
            require(exchange.header("content-type") == "application/partial-upload", "another Content-Type")
            require(count <= options.maxAppend, "\(count) bytes above max-append-size")
            require(flag == "?1" || count >= options.minAppend, "\(count) bytes below min-append-size")
        case "HEAD", "DELETE": require(flag == nil, "Upload-Complete")
        default: break
        }
        return broken
    }
}
