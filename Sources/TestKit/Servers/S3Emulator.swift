internal import Core
internal import Glibc
package import Synchronization

/// A bucket in memory, for faults that third-party servers do not produce on demand: errors of every kind, lost
/// answers, tokens that expire, regions that differ. It checks tokens, regions and clocks, and leaves signatures to the
/// real servers.
package final class S3Emulator: Sendable {
    package enum Kind: String, Hashable, Sendable {
        case create, part, parts, complete, abort, put, head, uploads, list, remove
    }

    package enum Fault: Sendable {
        /// No fault for this request: a later request is meant.
        case pass
        /// The request is carried out, and the answer is lost.
        case loseReply
        case answer(Int, [(String, String)] = [], String = "")
        /// The connection is closed after this many bytes of the body.
        case cut(after: Int)
        /// An `Error` with this code and status.
        case error(Int, String)
        /// The request is carried out, and the answer is an error.
        case doneBut(Int, String)
        /// One received byte is changed when it is stored.
        case damage
        /// The same for a part whose digest was not compared, or for the whole object.
        case rot
        /// Half of the received bytes is stored, and treated as all of them.
        case halve
        /// The answer claims this about the bytes, whatever is stored.
        case claim(String, String)
        /// The part is accepted, and lost; the whole object is never made, whatever the answer is.
        case forget
        /// No answer until the client closes.
        case silence
    }

    package struct State: Sendable {
        package var objects: [String: Object] = [:]
        package var uploads: [String: Upload] = [:]
        package var faults: [Kind: [Fault]] = [:]
        package var requests: [String] = []
        /// Only requests with this token are accepted.
        package var token: String?
        /// Only requests signed for this region are accepted.
        package var region: String?
        /// Seconds by which its clock is ahead.
        package var ahead = 0
        /// The maximum number of parts in a list.
        package var page = 1000
        package var hasConditions = true
        /// Tags of objects from one request.
        package var wholeTags = Tags.words
        /// Tags of parts, and of objects made from them.
        package var partTags = Tags.words
        /// Whether the tag of an object from parts is made from the tags of the parts.
        package var joinsTags = false
        /// Whether checksums of requests are ignored, and not repeated.
        package var ignoresChecksums = false
        /// The encryption of the whole bucket.
        package var encryption: String?
        var encrypted: [(String, String)] { encryption.map { [("x-amz-server-side-encryption", $0)] } ?? [] }
        /// Further refusals: a status, a code, and a message.
        package var judge: (@Sendable (Exchange) -> (Int, String, String)?)?
        var begun = 0
    }

    package let state = Mutex(State())
    private let server: FakeServer
    package var url: String { server.url }

    package init() throws {
        let box = Box()
        server = try FakeServer { try box.emulator?.answer($0) }
        box.set(self)
    }

    package func stop() { server.stop() }

    private final class Box: Sendable {
        private struct Weak: Sendable { weak var emulator: S3Emulator? }
        private let held = Mutex(Weak())
        var emulator: S3Emulator? { held.withLock { $0.emulator } }
        func set(_ emulator: S3Emulator) { held.withLock { $0.emulator = emulator } }
    }

    package func script(_ kind: Kind, _ faults: Fault...) { state.withLock { $0.faults[kind, default: []] += faults } }
    package func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    package var requests: [String] { state.withLock { $0.requests } }
    package var objects: [String: Object] { state.withLock { $0.objects } }
    package var uploads: [String: Upload] { state.withLock { $0.uploads } }

    // MARK: Requests

    struct Question {
        var kind: Kind
        var key: String
        var query: [String: String]
    }

    private static func question(_ exchange: Exchange) -> Question? {
        let parts = exchange.target.split(separator: "?", maxSplits: 1)
        let path = parts.first.map(String.init) ?? ""
        var query: [String: String] = [:]
        for pair in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
            let words = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            query[String(words[0])] = words.count > 1 ? decoded(words[1]) : ""
        }
        guard path.hasPrefix("/bucket") else { return nil }
        let key = decoded(path.dropFirst("/bucket/".count))
        let kind: Kind? =
            switch exchange.method {
            case "POST" where query["uploads"] != nil: .create
            case "POST" where query["uploadId"] != nil: .complete
            case "PUT" where query["uploadId"] != nil: .part
            case "PUT": .put
            case "GET" where query["uploadId"] != nil: .parts
            case "GET" where query["uploads"] != nil: .uploads
            case "GET" where key.isEmpty: .list
            case "HEAD": .head
            case "DELETE" where query["uploadId"] != nil: .abort
            case "DELETE" where !key.isEmpty: .remove
            default: nil
            }
        return kind.map { Question(kind: $0, key: key, query: query) }
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2 else {
                bytes.append(byte)
                continue
            }
            bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func answer(_ exchange: Exchange) throws {
        guard let question = Self.question(exchange) else { return fail(exchange, 405, "MethodNotAllowed") }
        let number = question.query["partNumber"].map { " \($0)" } ?? ""
        let fault = state.withLock { state -> Fault? in
            state.requests.append(question.kind.rawValue + number)
            guard let first = state.faults[question.kind]?.first else { return nil }
            state.faults[question.kind]?.removeFirst()
            return first
        }
        if case .cut(let count)? = fault {
            var left = count
            while left > 0, case let bytes = exchange.piece(left), !bytes.isEmpty { left -= bytes.count }
            return exchange.cut()
        }
        if case .silence? = fault { return exchange.hang() }
        let body = exchange.body()
        switch fault {
        case .answer(let status, let headers, let text)?: return exchange.reply(status, headers, text)
        case .error(let status, let code)?: return fail(exchange, status, code)
        default: break
        }
        if let refusal = refusal(exchange) { return reply(exchange, refusal) }
        let answer = perform(question, exchange, body, fault)
        switch fault {
        case .loseReply?: exchange.cut()
        case .doneBut(let status, let text)?: exchange.reply(status, [("Content-Type", "application/xml")], text)
        default: reply(exchange, answer)
        }
    }

    struct Reply {
        var status: Int
        var headers: [(String, String)] = []
        var body = ""
    }

    private func reply(_ exchange: Exchange, _ reply: Reply) {
        let headers = reply.headers + [("Date", date())]
        guard exchange.method == "HEAD" else { return exchange.reply(reply.status, headers, reply.body) }
        // No body, also for errors, and the length of the body that a GET would return.
        let lines = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
        exchange.answer(Array("HTTP/1.1 \(reply.status) Whatever\r\n\(lines)\r\n".utf8))
    }

    private func fail(_ exchange: Exchange, _ status: Int, _ code: String) {
        reply(exchange, Self.error(status, code))
    }

    static func error(_ status: Int, _ code: String, _ more: String = "") -> Reply {
        Reply(
            status: status, headers: [("Content-Type", "application/xml")],
            body: "<Error><Code>\(code)</Code><Message>no</Message>\(more)</Error>")
    }

    private func refusal(_ exchange: Exchange) -> Reply? {
        let (token, region, ahead, judge) = state.withLock { ($0.token, $0.region, $0.ahead, $0.judge) }
        if let (status, code, words) = judge?(exchange) {
            var reply = Self.error(status, code)
            reply.body = reply.body.replacing("<Message>no<", with: "<Message>\(words)<")
            return reply
        }
        let authorization = exchange.header("authorization") ?? ""
        if let token, exchange.header("x-amz-security-token") != token {
            return Self.error(400, "ExpiredToken")
        }
        if let region, !authorization.contains("/\(region)/s3/") {
            var reply = Self.error(400, "AuthorizationHeaderMalformed", "<Region>\(region)</Region>")
            reply.headers.append(("x-amz-bucket-region", region))
            return reply
        }
        if ahead != 0, let stamp = exchange.header("x-amz-date"), let signed = Self.seconds(stamp),
            abs(signed - (time(nil) + ahead)) > 900
        {
            return Self.error(403, "RequestTimeTooSkewed")
        }
        return nil
    }

    private static func seconds(_ stamp: String) -> Int? {
        let digits = stamp.filter(\.isNumber)
        guard digits.utf8.count == 14, let number = Int(digits) else { return nil }
        let (day, time) = number.quotientAndRemainder(dividingBy: 1_000_000)
        return CivilTime(
            year: day / 10_000, month: day / 100 % 100, day: day % 100, hour: time / 10_000, minute: time / 100 % 100,
            second: time % 100
        ).map { Int($0.moment().milliseconds / 1000) }
    }

    private func date() -> String {
        var now = time(nil) + state.withLock { $0.ahead }
        var parts = tm()
        gmtime_r(&now, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            let count = strftime(start, 64, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    // MARK: Actions

    private func perform(_ question: Question, _ exchange: Exchange, _ body: [UInt8], _ fault: Fault?) -> Reply {
        state.withLock { state in
            switch question.kind {
            case .create: create(question, exchange, &state)
            case .part: part(question, exchange, body, fault, &state)
            case .parts: Self.parts(question, state)
            case .complete: complete(question, exchange, body, fault, &state)
            case .put: put(question, exchange, body, fault, &state)
            case .abort:
                state.uploads.removeValue(forKey: question.query["uploadId"] ?? "") == nil
                    ? Self.error(404, "NoSuchUpload") : Reply(status: 204)
            case .remove: Self.removed(question, &state)
            case .head: Self.head(question, state)
            case .uploads: Self.uploads(question, state)
            case .list: Self.list(question, state)
            }
        }
    }

    /// An object that is not there was removed, too.
    private static func removed(_ question: Question, _ state: inout State) -> Reply {
        state.objects.removeValue(forKey: question.key)
        return Reply(status: 204)
    }

    private static let kept = [
        "content-type", "x-amz-storage-class", "x-amz-acl", "x-amz-server-side-encryption", "x-amz-tagging",
        "x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-server-side-encryption-aws-kms-key-id",
    ]

    private static func headers(_ exchange: Exchange) -> [String: String] {
        var found: [String: String] = [:]
        for name in kept { found[name] = exchange.header(name) }
        for name in ["sluice-sha256", "mtime", "camera", "title"] {
            found["x-amz-meta-\(name)"] = exchange.header("x-amz-meta-\(name)")
        }
        return found
    }

    private func create(_ question: Question, _ exchange: Exchange, _ state: inout State) -> Reply {
        state.begun += 1
        // In the form of Ceph and others.
        let id = "2~\(state.begun)/+=%"
        state.uploads[id] = Upload(key: question.key, headers: Self.headers(exchange))
        return Reply(
            status: 200,
            body: "<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>")
    }

    private func part(
        _ question: Question, _ exchange: Exchange, _ body: [UInt8], _ fault: Fault?, _ state: inout State
    ) -> Reply {
        let id = question.query["uploadId"] ?? ""
        guard state.uploads[id] != nil else { return Self.error(404, "NoSuchUpload") }
        guard let number = question.query["partNumber"].flatMap({ Int($0) }), (1...10_000).contains(number) else {
            return Self.error(400, "InvalidArgument")
        }
        var bytes = body
        if case .damage? = fault, !bytes.isEmpty { bytes[0] ^= 1 }
        if let mismatch = Self.mismatch(exchange, bytes) { return mismatch }
        if case .rot? = fault, !bytes.isEmpty { bytes[0] ^= 1 }
        let etag = state.partTags.tag(of: bytes, "\(number)-\(bytes.count)-\(state.requests.count)")
        if case .forget? = fault { return Reply(status: 200, headers: [("ETag", etag)]) }
        let checksum = exchange.header("x-amz-checksum-crc64nvme")
        state.uploads[id]?.parts[number] = Part(bytes: bytes, etag: etag, checksum: checksum)
        return Reply(status: 200, headers: [("ETag", etag)] + state.encrypted + state.repeated(exchange))
    }

    private func complete(
        _ question: Question, _ exchange: Exchange, _ body: [UInt8], _ fault: Fault?, _ state: inout State
    ) -> Reply {
        let id = question.query["uploadId"] ?? ""
        guard let upload = state.uploads[id] else { return Self.error(404, "NoSuchUpload") }
        if state.hasConditions, exchange.header("if-none-match") == "*", state.objects[question.key] != nil {
            return Self.error(412, "PreconditionFailed")
        }
        var bytes: [UInt8] = []
        var last = 0
        for piece in String(decoding: body, as: UTF8.self).split(separator: "<Part>").dropFirst() {
            func value(_ name: String) -> String? {
                piece.split(separator: "<\(name)>", omittingEmptySubsequences: false).dropFirst().first?.split(
                    separator: "<"
                ).first.map(String.init)
            }
            guard let number = value("PartNumber").flatMap({ Int($0) }), number > last else {
                return Self.error(400, "InvalidPartOrder")
            }
            last = number
            guard let part = upload.parts[number], part.etag == value("ETag")?.replacing("&quot;", with: "\"") else {
                return Self.error(400, "InvalidPart")
            }
            bytes += part.bytes
        }
        var isMade = true
        if case .forget? = fault { isMade = false }
        if isMade { state.uploads[id] = nil }
        if case .rot? = fault, !bytes.isEmpty { bytes[0] ^= 1 }
        let own = (state.partTags == .digits ? Tags.digits : .words).tag(of: [], "whole-\(state.requests.count)")
        let joined = state.joinsTags ? Self.joinedTag(of: upload, bytes) : nil
        if isMade {
            state.objects[question.key] = Object(bytes: bytes, headers: upload.headers, etag: joined ?? own)
        }
        let checksum = exchange.header("x-amz-checksum-crc64nvme").map {
            "<ChecksumCRC64NVME>\($0)</ChecksumCRC64NVME>"
        }
        return Reply(
            status: 200,
            body:
                "\n  \n<CompleteMultipartUploadResult><ETag>\((joined ?? own).replacing("\"", with: "&quot;"))</ETag>\(checksum ?? "")"
                + "</CompleteMultipartUploadResult>"
        )
    }

    private func put(
        _ question: Question, _ exchange: Exchange, _ body: [UInt8], _ fault: Fault?, _ state: inout State
    ) -> Reply {
        if state.hasConditions, exchange.header("if-none-match") == "*", state.objects[question.key] != nil {
            return Self.error(412, "PreconditionFailed")
        }
        if let mismatch = Self.mismatch(exchange, body) { return mismatch }
        var bytes = body
        if case .damage? = fault, !bytes.isEmpty { bytes[0] ^= 1 }
        if case .halve? = fault { bytes.removeLast(bytes.count / 2) }
        let etag = state.wholeTags.tag(of: bytes, "put-\(state.requests.count)")
        state.objects[question.key] = Object(bytes: bytes, headers: Self.headers(exchange), etag: etag)
        var claims = state.repeated(exchange)
        if case .claim(let name, let value)? = fault { claims = [(name, value)] }
        return Reply(status: 200, headers: [("ETag", etag)] + state.encrypted + claims)
    }
}
