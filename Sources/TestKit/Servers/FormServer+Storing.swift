internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

extension FormServer {
    // MARK: Opening

    /// - Returns: Whether the request was an opening.
    func open(_ exchange: Exchange, _ fields: [String: [UInt8]], _ file: MultipartForm.Part) throws -> Bool {
        func text(_ name: String) throws -> String {
            guard let bytes = fields[name] else { throw FormRefusal(status: 400, reason: "no \(name)") }
            return String(decoding: bytes, as: UTF8.self)
        }
        guard try text("token") == options.token else { throw FormRefusal(status: 401, reason: "token") }
        guard try text("sequenceNo") == "0" else { return false }
        if let token = fields["upToken"].map({ String(decoding: $0, as: UTF8.self) }), !token.isEmpty {
            throw FormRefusal(status: 409, reason: "an opening with a token")
        }
        guard Set(fields.keys) == ["sequenceNo", "blockSize", "totFileSize", "suffix", "token"] else {
            throw FormRefusal(status: 400, reason: "the opening has \(fields.keys.sorted())")
        }
        guard file.body.isEmpty else { throw FormRefusal(status: 400, reason: "bytes in an opening") }
        guard let size = Int64(try text("totFileSize")), size >= 0, let block = Int64(try text("blockSize")), block > 0
        else { throw FormRefusal(status: 400, reason: "the sizes") }
        guard let written = file.filename, !written.isEmpty else {
            throw FormRefusal(status: 400, reason: "an opening without a name")
        }
        let name = FilePath(bytes: written)
        let suffix = String(decoding: name.fileExtension?.bytes ?? [], as: UTF8.self)
        guard try text("suffix") == suffix else { throw FormRefusal(status: 400, reason: "suffix") }
        let (id, isLost) = state.withLock { state -> (String, Bool) in
            state.requests.append("open")
            state.made += 1
            let id = "up-token-\(state.made)"
            state.uploads[id] = Upload(
                total: size, count: Int(max(1, (size + block - 1) / block)), name: name, suffix: suffix,
                nominal: block)
            let isLost = state.faults.lostOpenings > 0
            if isLost { state.faults.lostOpenings -= 1 }
            return (id, isLost)
        }
        try Files.replace(marker(id), with: [])
        if isLost { exchange.cut() } else { exchange.reply(200, [], #"{"data":{"upToken":"\#(id)"}}"#) }
        return true
    }

    func marker(_ id: String) -> FilePath {
        folder.appending(FilePath(".\(Self.crc(Array(id.utf8))).part"))
    }

    // MARK: Blocks

    func store(_ exchange: Exchange, _ fields: [String: [UInt8]], _ file: MultipartForm.Part) throws {
        var block: FormBlock
        if preset == "blueimp" {
            guard fields.isEmpty else { throw FormRefusal(status: 400, reason: "has \(fields.keys.sorted())") }
            block = try range(exchange, file)
        } else {
            block = try rules.block(
                fields, filename: file.filename ?? [], size: Int64(file.body.count), block: options.block)
            // The original name is in both places. A field contains it unencoded, so it may look like encoded text.
            if rules.filename == nil, let name = rules.name, Self.plain(fields[name] ?? []) != file.filename {
                throw FormRefusal(status: 400, reason: "the part's file name is not that of \(name)")
            }
        }
        var bytes = file.body
        let isDamaged = state.withLock { state in
            guard state.faults.damaged > 0, !bytes.isEmpty else { return false }
            state.faults.damaged -= 1
            return true
        }
        if isDamaged { bytes[0] ^= 0xFF }
        if let crc = fields["crc"], !crc.isEmpty, String(decoding: crc, as: UTF8.self) != Self.crc(bytes) {
            throw FormRefusal(status: 422, reason: "crc")
        }
        if block.id.isEmpty {
            // It has no field that distinguishes it from another: each is a separate upload.
            let number = state.withLock { state in
                state.made += 1
                return state.made
            }
            block.id = preset == "blueimp" ? block.name.display : "single \(number)"
        }
        let (outcome, id) = try storeBlock(bytes, block)
        switch outcome {
        case .lost: exchange.cut()
        case .reset: exchange.reply(200, [], #"{"success":false,"reset":true}"#)
        case .stored(let url): answer(exchange, url, id, bytes)
        }
    }

    private enum Outcome {
        case lost, reset
        case stored(url: String?)
    }

    private func storeBlock(_ bytes: [UInt8], _ block: FormBlock) throws -> (Outcome, String) {
        try state.withLock { state in
            state.requests.append("block \(block.index + 1)")
            if let forget = state.faults.forgets, forget.times > 0,
                state.uploads[block.id]?.acceptedBlocks == forget.after
            {
                state.faults.forgets?.times -= 1
                state.uploads[block.id] = nil
                try Files.removeIfPresent(marker(block.id))
            }
            if state.faults.forgetsFinished, state.uploads[block.id]?.url != nil { state.uploads[block.id] = nil }
            if block.resumes {
                guard state.uploads[block.id] != nil else {
                    throw FormRefusal(status: 400, reason: "a resume of what never began")
                }
                state.resumes.append(block.index + 1)
            }
            if preset == "breakpoint", state.uploads[block.id] == nil {
                throw FormRefusal(status: 404, reason: "upToken")
            }
            if state.uploads[block.id] == nil { try Files.replace(marker(block.id), with: []) }
            var upload =
                state.uploads[block.id]
                ?? Upload(total: block.total, count: block.isSingle ? 1 : block.count, name: block.name)
            if let total = block.total, let known = upload.total, total != known {
                throw FormRefusal(status: 409, reason: "the size was \(known) and is \(total)")
            }
            if let count = block.count, let known = upload.count, count != known {
                throw FormRefusal(status: 409, reason: "there were \(known) blocks and are \(count)")
            }
            if let nominal = block.nominal, let known = upload.nominal, nominal != known {
                throw FormRefusal(status: 409, reason: "a block had \(known) B and has \(nominal)")
            }
            if let suffix = block.suffix, suffix != upload.suffix {
                throw FormRefusal(status: 409, reason: "the suffix was \(upload.suffix) and is \(suffix)")
            }
            upload.nominal = upload.nominal ?? block.nominal
            if upload.count == nil, let total = upload.total {
                let nominal = block.nominal ?? options.block
                upload.count = Int(max(1, (total + nominal - 1) / nominal))
            }
            if let count = upload.count, block.index >= count { throw FormRefusal(status: 400, reason: "beyond") }
            let number = block.index + 1
            if state.faults.reset == number {
                state.faults.reset = nil
                state.uploads[block.id] = nil
                try Files.removeIfPresent(marker(block.id))
                return (.reset, block.id)
            }
            upload.acceptedBlocks += 1
            if rules.appends { upload.appended += bytes } else { upload.blocks[block.index] = bytes }
            var url: String?
            if let known = upload.url {
                url = known
            } else if isWhole(upload, block), !options.wantsFinish {
                upload.url = try join(upload, block.id)
                url = upload.url
            }
            if state.faults.earlyURL == number { url = url ?? "http://files.example/early" }
            if state.faults.lateURLs > 0, url != nil {
                state.faults.lateURLs -= 1
                url = nil
            }
            if state.faults.omitsURL { url = nil }
            state.uploads[block.id] = upload
            if state.faults.lostAnswers.remove(number) != nil { return (.lost, block.id) }
            return (.stored(url: url), block.id)
        }
    }

    private func isWhole(_ upload: Upload, _ block: FormBlock) -> Bool {
        // Without checking earlier blocks, as such servers do.
        if rules.appends {
            return upload.total.map { Int64(upload.appended.count) >= $0 } ?? (block.index + 1 == upload.count)
        }
        return upload.blocks.count == upload.count
    }

    /// - Returns: Its address.
    private func join(_ upload: Upload, _ id: String) throws -> String {
        let content =
            rules.appends ? upload.appended : (0..<(upload.count ?? 1)).flatMap { upload.blocks[$0] ?? [] }
        var name = upload.name
        var number = 1
        while try FileStatus.ifPresent(at: folder.appending(name)) != nil {
            number += 1
            let tail = upload.name.fileExtension.map { Array(".".utf8) + $0.bytes } ?? []
            name = upload.name.parent.appending(
                FilePath(bytes: upload.name.stem.bytes + Array(" (\(number))".utf8) + tail))
        }
        let path = folder.appending(name)
        try Files.makeFolders(path.parent)
        // Its own name may have the maximum length of a name.
        try Files.replace(marker(id), with: content)
        try Files.rename(marker(id), to: path)
        return "http://files.example/\(PercentCoding.encode(name.bytes, keeping: "/"))"
    }

    private func answer(_ exchange: Exchange, _ url: String?, _ id: String, _ bytes: [UInt8]) {
        switch preset {
        case "breakpoint":
            exchange.reply(200, [], url.map { #"{"data":{"fileUrl":"\#($0)"}}"# } ?? #"{"data":{}}"#)
        case "fineuploader":
            let new = state.withLock { state -> String? in
                guard let new = state.faults.newID, let upload = state.uploads.removeValue(forKey: id) else {
                    return nil
                }
                state.faults.newID = nil
                state.uploads[new] = upload
                return new
            }
            exchange.reply(200, [], new.map { #"{"success":true,"newUuid":"\#($0)"}"# } ?? rules.answer)
        case "blueimp":
            let size = state.withLock { $0.uploads[id]?.appended.count ?? 0 }
            let range = size > 0 ? [("Range", "0-\(size - 1)")] : []
            exchange.reply(200, range, #"{"files":[{"size":\#(size)}]}"#)
        default: exchange.reply(200, [], rules.answer)
        }
    }

    /// The block as described in blueimp's headers.
    private func range(_ exchange: Exchange, _ file: MultipartForm.Part) throws -> FormBlock {
        guard let disposition = exchange.header("content-disposition"),
            disposition.hasPrefix("attachment; filename=\""), disposition.hasSuffix("\""),
            let name = PercentCoding.bytes(decoding: disposition.dropFirst(22).dropLast())
        else { throw FormRefusal(status: 400, reason: "Content-Disposition") }
        var block = FormBlock(name: FilePath(bytes: name))
        guard let line = exchange.header("content-range") else {
            block.total = Int64(file.body.count)
            block.isSingle = true
            return block
        }
        let numbers = line.dropFirst(6).split(whereSeparator: { $0 == "-" || $0 == "/" }).compactMap { Int64($0) }
        guard line.hasPrefix("bytes "), numbers.count == 3, numbers[0] % options.block == 0,
            numbers[1] - numbers[0] + 1 == Int64(file.body.count), numbers[1] < numbers[2],
            // Only a file larger than a block is split, and only the last block is short.
            numbers[2] > options.block, numbers[1] + 1 == min(numbers[0] + options.block, numbers[2])
        else { throw FormRefusal(status: 400, reason: "Content-Range: \(line)") }
        block.index = Int(numbers[0] / options.block)
        block.total = numbers[2]
        return block
    }

    // MARK: The end

    func finish(_ exchange: Exchange) throws {
        let id = try idOfForm(exchange)
        let (url, isLost) = try state.withLock { state -> (String, Bool) in
            state.requests.append("finish")
            guard var upload = state.uploads[id] else { throw FormRefusal(status: 404, reason: "finish of \(id)") }
            if upload.url == nil {
                guard upload.blocks.count == upload.count else {
                    throw FormRefusal(status: 409, reason: "finished before all blocks")
                }
                upload.url = try join(upload, id)
                state.uploads[id] = upload
            }
            let isLost = state.faults.lostFinishes > 0
            if isLost {
                state.faults.lostFinishes -= 1
                if state.faults.forgetsFinished { state.uploads[id] = nil }
            }
            return (upload.url ?? "", isLost)
        }
        if isLost { exchange.cut() } else { exchange.reply(200, [], #"{"success":true,"data":{"fileUrl":"\#(url)"}}"#) }
    }

    func abort(_ exchange: Exchange) throws {
        let id = try idOfForm(exchange)
        let instead = state.withLock { state -> Int? in
            state.requests.append("abort")
            return state.faults.aborts.isEmpty ? nil : state.faults.aborts.removeFirst()
        }
        switch instead {
        case 0:
            exchange.cut()
            return
        case let status?:
            exchange.reply(status, [("Content-Type", "text/html")], status == 200 ? "<html>Please log in</html>" : "no")
            return
        case nil: break
        }
        // As a script with a lock on the upload does: otherwise a block that is still being read would be stored after
        // the removal. A minute at most, should its client never send the rest.
        for _ in 0..<60_000 where underWay > 0 { usleep(1000) }
        try state.withLock { state in
            guard state.uploads.removeValue(forKey: id) != nil else {
                throw FormRefusal(status: 404, reason: "abort of \(id)")
            }
            try Files.removeIfPresent(marker(id))
        }
        exchange.reply(200, [], "{}")
    }

    private func idOfForm(_ exchange: Exchange) throws -> String {
        let text = String(decoding: exchange.body(), as: UTF8.self)
        guard exchange.header("content-type") == "application/x-www-form-urlencoded",
            let id = try Self.pairs(text)["id"]
        else { throw FormRefusal(status: 400, reason: "the form \(text)") }
        return String(decoding: id, as: UTF8.self)
    }

    /// CRC-32 bit by bit, as the standard defines it.
    package static func crc(_ bytes: [UInt8]) -> String {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0xEDB8_8320 : crc >> 1 }
        }
        let digits = String(~crc, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
