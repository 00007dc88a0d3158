internal import Core
internal import Linux
internal import Synchronization

/// One request at a ``ResumableServer``, in a version that it speaks.
struct ResumableRequest {
    let exchange: Exchange
    let options: ResumableServer.Options
    let fault: ResumableServer.Fault
    let store: ResumableStore

    private static let problems = "https://iana.org/assignments/http-problem-types#"

    private var path: String { exchange.target }
    private var limits: [(String, String)] { options.namesLimits ? [("Upload-Limit", options.limits)] : [] }
    private var completes: Bool { exchange.header("upload-complete") == "?1" }

    // MARK: Creation

    func create(_ version: String) {
        let length = exchange.header("upload-length").flatMap { Int($0) }
        let path = store.state.withLock { state in
            state.made += 1
            let path = "/u/\(state.made)"
            var upload = ResumableServer.Upload()
            (upload.name, upload.type) = (fileName, exchange.header("content-type"))
            (upload.version, upload.length) = (version, length)
            state.uploads[path] = upload
            return path
        }
        interim([("Location", path)] + limits)
        receive(into: path)
        if completes {
            finish(path)
            return answer(options.final.status, final(0))
        }
        switch options.style {
        case .draft: answer(201, [("Location", path)] + limits)
        case .tusd: answer(201, [("Location", path), ("Upload-Offset", "0")])
        case .swiftNIO: answer(201, [("Location", path), ("Upload-Complete", "?0"), ("Upload-Offset", "0")])
        case .terse: answer(201, [("Location", path)])
        }
    }

    /// The name in `filename*`.
    private var fileName: String? {
        guard let value = exchange.header("content-disposition"), let mark = value.firstRange(of: "filename*=UTF-8''")
        else { return nil }
        return PercentCoding.text(decoding: value[mark.upperBound...])
    }

    // MARK: Offset

    func look() {
        guard let upload = store.state.withLock({ $0.uploads[path] }) else { return answer(404) }
        if upload.isOpen { store.note("HEAD while a transfer is open") }
        var headers = [
            ("Upload-Offset", "\(upload.held.count)"), ("Upload-Complete", upload.isComplete ? "?1" : "?0"),
            ("Cache-Control", "no-store"),
        ]
        if hasAll, let length = upload.length { headers.append(("Upload-Length", "\(length)")) }
        if hasAll { headers += limits }
        answer(204, headers)
    }

    private var hasAll: Bool { options.style == .draft || options.style == .tusd }

    // MARK: Append

    func append() {
        guard let upload = store.state.withLock({ $0.uploads[path] }) else { return refuse(404) }
        guard exchange.header("content-type") == "application/partial-upload" else {
            return refuse(options.style == .tusd ? 400 : 415)
        }
        if upload.isComplete, options.style != .swiftNIO { return refuse(400, problem: "completed-upload") }
        guard exchange.header("upload-offset") == "\(upload.held.count)", !upload.isComplete else {
            return conflict(upload.held.count, upload.isComplete)
        }
        let count = exchange.header("content-length").flatMap { Int($0) } ?? 0
        if count > options.maxAppend { return refuse(413) }
        store.state.withLock { $0.uploads[path]?.isOpen = true }
        interim([("Upload-Offset", "\(upload.held.count)")])
        let received = receive(into: path)
        store.state.withLock { $0.uploads[path]?.isOpen = false }
        guard received == count || isPartial else { return }
        let now = store.state.withLock { $0.uploads[path] } ?? upload
        if let length = now.length, now.held.count > length {
            return refuse(400, problem: "inconsistent-upload-length")
        }
        let isWhole = now.held.count == now.length
        if completes, !isPartial, !isWhole { return refuse(400, problem: "inconsistent-upload-length") }
        if isWhole, completes && !isPartial || options.style == .tusd {
            finish(path)
            return answer(options.style == .tusd ? 204 : options.final.status, final(now.held.count))
        }
        switch options.style {
        case .draft where !isPartial: answer(204, [("Upload-Complete", "?0")])
        case .terse: answer(204)
        case .swiftNIO: answer(201, [("Upload-Complete", "?0"), ("Upload-Offset", "\(now.held.count)")])
        case .draft, .tusd: answer(204, [("Upload-Offset", "\(now.held.count)")])
        }
    }

    private var isPartial: Bool { if case .partial = fault { true } else { false } }

    /// Keeps the bytes of the body as they come.
    ///
    /// - Returns: How many came.
    @discardableResult
    private func receive(into path: String) -> Int {
        var received = 0
        var reported = 0
        var most = Int.max
        if case .cut(let bytes) = fault { most = bytes }
        if case .partial(let bytes) = fault { most = bytes }
        while received < most {
            let piece = exchange.piece(min(64 << 10, most - received))
            if piece.isEmpty { break }
            received += piece.count
            let held = store.state.withLock { state in
                state.uploads[path]?.held += piece
                return state.uploads[path]?.held.count ?? 0
            }
            if let every = options.interimEvery, received - reported >= every {
                reported = received
                interim([("Upload-Offset", "\(held)")])
            }
        }
        if case .cut = fault { exchange.cut(reset: true) }
        if case .partial = fault { _ = exchange.body() }
        return received
    }

    /// A file that has every byte.
    private func finish(_ path: String) {
        let upload: ResumableServer.Upload? = store.state.withLock { state in
            state.uploads[path]?.isComplete = true
            let upload = state.uploads[path]
            if !options.keepsFinished { state.uploads[path] = nil }
            if let upload, options.final.status < 300 { state.finished.append(upload.held) }
            return upload
        }
        guard let folder = options.folder, let upload, let name = upload.name, options.final.status < 300 else {
            return
        }
        do {
            // It appears with all its bytes.
            try Files.replace(folder.appending(FilePath(name)), with: upload.held)
        } catch { store.note("the file \(name) cannot be written: \(error)") }
    }

    /// The headers of the final answer to `count` bytes.
    private func final(_ count: Int) -> [(String, String)] {
        switch options.style {
        case .draft: [("Upload-Complete", "?1")] + options.final.headers
        case .tusd: [("Upload-Offset", "\(count)")]
        case .swiftNIO: [("Upload-Incomplete", "?0"), ("Upload-Offset", "\(count)")] + options.final.headers
        case .terse: options.final.headers
        }
    }

    // MARK: Removal

    func remove() {
        let isThere = store.state.withLock { state in
            guard state.uploads.removeValue(forKey: path) != nil else { return false }
            state.removed += 1
            return true
        }
        answer(isThere ? 204 : 404)
    }

    // MARK: Answers

    private func conflict(_ offset: Int, _ isComplete: Bool) {
        switch options.style {
        case .draft:
            refuse(
                409, [("Upload-Offset", "\(offset)")], problem: "mismatching-upload-offset",
                more: ", \"expected-offset\": \(offset)")
        case .tusd: refuse(409, words: "ERR_MISMATCHED_OFFSET: mismatched offset\n")
        case .swiftNIO:
            store.state.withLock { $0.uploads[path] = nil }
            refuse(409, [("Upload-Complete", isComplete ? "?1" : "?0"), ("Upload-Offset", "\(offset)")])
        case .terse: refuse(409)
        }
    }

    private func refuse(
        _ status: Int, _ headers: [(String, String)] = [], problem: String? = nil, more: String = "", words: String = ""
    ) {
        _ = exchange.body()
        guard let problem, options.style == .draft else { return answer(status, headers, words) }
        answer(
            status, headers + [("Content-Type", "application/problem+json")],
            "{\"type\": \"\(Self.problems)\(problem)\", \"title\": \"refused\"\(more)}")
    }

    private func interim(_ headers: [(String, String)]) {
        guard options.interimEvery != nil else { return }
        let version =
            exchange.header("upload-draft-interop-version").map { [("Upload-Draft-Interop-Version", $0)] } ?? []
        let lines = (headers + version).map { "\($0.0): \($0.1)\r\n" }.joined()
        exchange.raw("HTTP/1.1 104 Upload Resumption Supported\r\n\(lines)\r\n")
    }

    private func answer(_ status: Int, _ headers: [(String, String)] = [], _ body: String? = nil) {
        if case .lostAnswer = fault { return exchange.cut() }
        let marks = [("Upload-Complete", "?1"), ("Upload-Incomplete", "?0")]
        let isFinal = status == options.final.status && headers.contains { line in marks.contains { $0 == line } }
        exchange.reply(status, headers, body ?? (isFinal && exchange.method != "HEAD" ? options.final.body : ""))
    }
}
