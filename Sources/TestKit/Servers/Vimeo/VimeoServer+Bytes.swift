internal import Glibc
internal import Synchronization

// The host for bytes: tus to the links of one flow, PUT with ranges to those of the others.

extension VimeoServer {
    func receiveBytes(_ exchange: Exchange) throws {
        if exchange.header("authorization") != nil { change { $0.tokensAtBytes += 1 } }
        let number = Int(exchange.target.split(separator: "/").last?.prefix { $0 != "?" } ?? "")
        if exchange.target.hasPrefix("/picture/") { return receivePicture(exchange, number ?? 0) }
        let found = state.withLock { $0.uploads.first { $0.number == number && !$0.isDeleted && !$0.isExpired } }
        let named = exchange.header("upload-offset") ?? exchange.header("content-range") ?? ""
        let kind = Self.kind(exchange)
        change { $0.requests.append(kind.map { named.isEmpty ? "\($0)" : "\($0) \(named)" } ?? exchange.method) }
        guard let kind else { return exchange.reply(405) }
        // Exactly as it was issued.
        guard let upload = found, exchange.target == "/upload/\(upload.number)?signature=s\(upload.number)" else {
            return exchange.reply(state.withLock { $0.behaviour.gone })
        }
        let fault = next(kind)
        if case .answer(let status, let headers, let text)? = fault { return exchange.reply(status, headers, text) }
        guard (upload.flow == .tus) == (kind == .head || kind == .patch) else { return exchange.reply(405) }
        if kind != .head, exchange.header("content-length") == nil { return exchange.reply(411) }
        switch kind {
        case .head:
            guard exchange.header("tus-resumable") == "1.0.0" else {
                return exchange.reply(412, [], "unsupported version")
            }
            tusAnswer(
                exchange, 200, upload.number, 0,
                [
                    ("Upload-Length", "\(upload.size)"), ("Cache-Control", "no-store"),
                    // The service's own metadata, of no use to clients.
                    ("Upload-Metadata", "clip_id MQ==,no_value"),
                ])
        case .patch: patch(exchange, upload, fault)
        case .put: put(exchange, upload, fault)
        default: rangeAnswer(exchange, upload.number, 0)
        }
    }

    private static func kind(_ exchange: Exchange) -> Kind? {
        switch exchange.method {
        case "HEAD": .head
        case "PATCH": .patch
        case "PUT": exchange.header("content-range")?.contains("*/") == true ? .question : .put
        default: nil
        }
    }

    private func held(_ number: Int) -> Int64 {
        state.withLock { state in state.uploads.first { $0.number == number }?.held ?? 0 }
    }

    private func patch(_ exchange: Exchange, _ upload: Upload, _ fault: Fault?) {
        guard exchange.header("tus-resumable") == "1.0.0" else { return exchange.reply(412, [], "unsupported version") }
        guard exchange.header("content-type") == "application/offset+octet-stream" else { return exchange.reply(415) }
        let length = exchange.header("content-length").flatMap { Int64($0) } ?? 0
        guard let offset = exchange.header("upload-offset").flatMap({ Int64($0) }), offset == held(upload.number) else {
            return exchange.reply(409)
        }
        guard offset + length <= upload.size else { return exchange.reply(413) }
        guard store(exchange, upload.number, at: Int(offset), length, fault) else { return exchange.cut() }
        if case .loseReply? = fault { return exchange.cut() }
        if case .refused(let status)? = fault { return exchange.reply(status) }
        tusAnswer(exchange, 204, upload.number, fewer(fault), [])
    }

    private func tusAnswer(
        _ exchange: Exchange, _ status: Int, _ number: Int, _ fewer: Int, _ more: [(String, String)]
    ) {
        let offset = ("Upload-Offset", "\(held(number) - Int64(fewer))")
        exchange.reply(status, [("Tus-Resumable", "1.0.0"), offset] + more)
    }

    private func put(_ exchange: Exchange, _ given: Upload, _ fault: Fault?) {
        var upload = given
        let length = exchange.header("content-length").flatMap { Int64($0) } ?? 0
        var (start, total): (Int64, Int64?) = (0, nil)
        if let range = exchange.header("content-range") {
            guard let named = Self.range(range, of: length) else { return exchange.reply(400, [], "bad range") }
            (start, total) = named
        }
        // If the creation did not give the size, the first bytes do.
        if upload.size < 0 { upload.size = total ?? length }
        // A gap would lose bytes; overlapping bytes are written over.
        guard start <= held(upload.number), start + length <= upload.size, total ?? upload.size == upload.size else {
            return exchange.reply(400, [], "bad range")
        }
        change { [size = upload.size] state in
            guard let index = state.uploads.firstIndex(where: { $0.number == given.number }) else { return }
            state.uploads[index].size = size
        }
        guard store(exchange, upload.number, at: Int(start), length, fault) else { return exchange.cut() }
        if case .loseReply? = fault { return exchange.cut() }
        if case .refused(let status)? = fault { return exchange.reply(status) }
        if case .claims? = fault { return rangeAnswer(exchange, upload.number, fewer(fault)) }
        exchange.reply(200)
    }

    /// The first offset and the total size; `nil` for an invalid range.
    ///
    /// Accepts the forms of the service's own clients: also with a colon, with the end after the last byte, and without
    /// the size.
    private static func range(_ text: String, of length: Int64) -> (start: Int64, total: Int64?)? {
        let words = text.drop { !$0.isNumber }.split { "-/".contains($0) }
        guard text.hasPrefix("bytes"), words.count == 3, let first = Int64(words[0]), let end = Int64(words[1]),
            first < 1 << 60, end == first + length || end == first + length - 1,
            words[2] == "*" || Int64(words[2]) != nil
        else { return nil }
        return (first, Int64(words[2]))
    }

    private func rangeAnswer(_ exchange: Exchange, _ number: Int, _ fewer: Int) {
        let (held, meaning) = (held(number) - Int64(fewer), state.withLock { $0.behaviour.range })
        let last = meaning == .count ? held : held - 1
        exchange.reply(308, held > 0 ? [("Range", "bytes=0-\(last)")] : [])
    }

    private func fewer(_ fault: Fault?) -> Int { if case .claims(let count)? = fault { count } else { 0 } }

    /// - Returns: Whether all of it came.
    private func store(_ exchange: Exchange, _ number: Int, at offset: Int, _ length: Int64, _ fault: Fault?) -> Bool {
        var left = Int(length)
        if case .cut(let count)? = fault { left = min(left, count) }
        let isWhole = left == Int(length)
        var pause = 0
        if case .slow(let milliseconds)? = fault { pause = milliseconds }
        let discards = state.withLock { $0.behaviour.discards }
        var got: [UInt8] = []
        var count: Int64 = 0
        while left > 0 {
            let piece = exchange.piece(min(left, 64 << 10))
            if piece.isEmpty { break }
            if !discards { got += piece }
            count += Int64(piece.count)
            left -= piece.count
            if pause > 0 { usleep(UInt32(pause) * 1000) }
        }
        func keep() {
            change { state in
                guard let index = state.uploads.firstIndex(where: { $0.number == number }) else { return }
                state.received += count
                if discards {
                    state.uploads[index].discarded = max(state.uploads[index].discarded, Int64(offset) + count)
                    return
                }
                let bytes = state.uploads[index].bytes
                state.uploads[index].bytes = bytes.prefix(offset) + got + bytes.dropFirst(offset + got.count)
            }
        }
        let hasAll = left == 0 && isWhole
        let keeps = state.withLock { $0.behaviour.keeps }
        if hasAll || keeps == .bytes { keep() }
        if !hasAll, keeps == .nothing {
            change { state in
                guard let index = state.uploads.firstIndex(where: { $0.number == number }) else { return }
                (state.uploads[index].bytes, state.uploads[index].discarded) = ([], 0)
            }
        }
        return hasAll
    }
}
