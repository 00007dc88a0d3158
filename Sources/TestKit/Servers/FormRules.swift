internal import Core

/// The expectations of one preset's servers, written independently of the product from the clients' own sources.
struct FormRules: Sendable {
    var part = "file"
    /// The file name in the part; `nil` for the original one.
    var filename: String?
    var index: String?
    var base = 0
    var count: String?
    var offset: String?
    var nominal: String?
    var length: String?
    var total: String?
    var id: String?
    var name: String?
    var path: String?
    /// Other fields that must be present.
    var more: Set<String> = []
    /// A field with the value `true` in the first request after an upload is resumed, and absent from all others.
    var resume: String?
    /// Fields that a file of one block does not have.
    var single: Set<String> = []
    var merges = false
    /// Whether all fields are in the query as well.
    var inQuery = false
    var isProbed = false
    var headers: [String: String] = [:]
    /// The answer to an accepted block.
    var answer = ""
    var appends = false

    var fields: Set<String> {
        Set([index, count, offset, nominal, length, total, id, name, path].compactMap { $0 }).union(more)
    }

    static let browser = [
        "accept": "application/json", "cache-control": "no-cache", "x-requested-with": "XMLHttpRequest",
    ]

    static func of(_ preset: String) -> FormRules? {
        switch preset {
        case "breakpoint":
            FormRules(
                part: "block", index: "sequenceNo", base: 1, nominal: "blockSize", total: "totFileSize", id: "upToken",
                more: ["suffix", "token", "crc"])
        case "resumable":
            FormRules(
                index: "resumableChunkNumber", base: 1, count: "resumableTotalChunks", nominal: "resumableChunkSize",
                length: "resumableCurrentChunkSize", total: "resumableTotalSize", id: "resumableIdentifier",
                name: "resumableFilename", path: "resumableRelativePath", more: ["resumableType"], merges: true,
                inQuery: true, isProbed: true)
        case "flow":
            FormRules(
                index: "flowChunkNumber", base: 1, count: "flowTotalChunks", nominal: "flowChunkSize",
                length: "flowCurrentChunkSize", total: "flowTotalSize", id: "flowIdentifier", name: "flowFilename",
                path: "flowRelativePath", merges: true, isProbed: true)
        case "simple-uploader":
            FormRules(
                index: "chunkNumber", base: 1, count: "totalChunks", nominal: "chunkSize", length: "currentChunkSize",
                total: "totalSize", id: "identifier", name: "filename", path: "relativePath", merges: true,
                isProbed: true)
        case "dropzone":
            FormRules(
                index: "dzchunkindex", count: "dztotalchunkcount", offset: "dzchunkbyteoffset", nominal: "dzchunksize",
                total: "dztotalfilesize", id: "dzuuid",
                single: [
                    "dzchunkindex", "dztotalchunkcount", "dzchunkbyteoffset", "dzchunksize", "dztotalfilesize",
                    "dzuuid",
                ], headers: browser)
        case "fineuploader":
            FormRules(
                part: "qqfile", filename: "blob", index: "qqpartindex", count: "qqtotalparts",
                offset: "qqpartbyteoffset", length: "qqchunksize", total: "qqtotalfilesize", id: "qquuid",
                name: "qqfilename", resume: "qqresume",
                single: ["qqpartindex", "qqtotalparts", "qqpartbyteoffset", "qqchunksize"],
                headers: browser, answer: #"{"success":true}"#)
        case "plupload":
            FormRules(
                filename: "blob", index: "chunk", count: "chunks", id: "name", name: "name",
                answer: #"{"jsonrpc":"2.0","result":null,"id":"id"}"#, appends: true)
        case "webuploader":
            FormRules(
                index: "chunk", count: "chunks", total: "size", id: "id", name: "name",
                more: ["type", "lastModifiedDate"], single: ["chunk", "chunks"])
        case "blueimp": FormRules(part: "files[]", appends: true)
        default: nil
        }
    }
}

/// One block as described by a request.
struct FormBlock: Sendable {
    /// From 0.
    var index = 0
    var count: Int?
    var offset: Int64?
    var nominal: Int64?
    var length: Int64?
    var total: Int64?
    var id = ""
    var name: FilePath
    var isSingle = false
    /// The extension of the name, where each block names it.
    var suffix: String?
    var resumes = false
}

struct FormRefusal: Error {
    let status: Int
    let reason: String
}

extension FormRules {
    /// Reads and checks the fields of a block.
    ///
    /// - Parameter block: The agreed size of a block, for forms that do not state it.
    func block(_ fields: [String: [UInt8]], filename: [UInt8], size: Int64, block: Int64) throws -> FormBlock {
        let isSingle = !single.isEmpty && single.isDisjoint(with: fields.keys)
        let wanted = isSingle ? self.fields.subtracting(single) : self.fields
        for name in wanted.sorted() where fields[name] == nil { throw FormRefusal(status: 400, reason: "no \(name)") }
        for name in fields.keys.sorted() where !wanted.contains(name) && name != resume {
            throw FormRefusal(status: 400, reason: "an unknown field \(name)")
        }
        func number(_ name: String?) throws -> Int64? {
            guard let name, let bytes = fields[name] else { return nil }
            guard bytes.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int64(String(decoding: bytes, as: UTF8.self))
            else {
                throw FormRefusal(status: 400, reason: "\(name) is no number")
            }
            return number
        }
        let path = path.flatMap { fields[$0] } ?? name.flatMap { fields[$0] } ?? filename
        var found = FormBlock(name: FilePath(bytes: path), isSingle: isSingle)
        if let expected = self.filename ?? nil, filename != Array(expected.utf8) {
            throw FormRefusal(status: 400, reason: "the part's file name is not \(expected)")
        }
        if let number = try number(index) {
            found.index = Int(number) - base
            guard found.index >= 0 else {
                throw FormRefusal(status: 400, reason: "block \(number) of a base of \(base)")
            }
        }
        found.count = try number(count).map { Int($0) }
        found.offset = try number(offset)
        found.nominal = try number(nominal)
        if found.nominal == 0 { throw FormRefusal(status: 400, reason: "blocks of no byte") }
        found.length = try number(length)
        found.total = try number(total)
        if let value = resume.flatMap({ fields[$0] }) {
            guard value == Array("true".utf8) else { throw FormRefusal(status: 400, reason: "a resume of \(value)") }
            found.resumes = true
        }
        found.suffix = fields["suffix"].map { String(decoding: $0, as: UTF8.self) }
        found.id = id.flatMap { fields[$0] }.map { String(decoding: $0, as: UTF8.self) } ?? ""
        if id == "dzuuid", !found.id.isEmpty, !Self.isRandom(found.id) {
            throw FormRefusal(status: 400, reason: "the id \(found.id) is no UUID")
        }
        try judge(found, size, block)
        return found
    }

    /// Whether it is a UUID of version 4, as browsers make it.
    private static func isRandom(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.count) == [8, 4, 4, 4, 12] && parts[2].first == "4"
            && "89abAB".contains(parts[3].first ?? " ") && parts.allSatisfy { $0.allSatisfy(\.isHexDigit) }
    }

    private func judge(_ found: FormBlock, _ size: Int64, _ block: Int64) throws {
        func insist(_ isTrue: Bool, _ reason: String) throws {
            if !isTrue { throw FormRefusal(status: 400, reason: reason) }
        }
        let nominal = found.nominal ?? block
        // A request without fields of blocks has one block, and for one block there are no such fields.
        if found.isSingle { try insist(size <= block, "\(size) B in one, and blocks have \(block)") }
        if !found.isSingle, !single.isEmpty { try insist(found.count != 1, "the fields of blocks for a single one") }
        if let length = found.length { try insist(length == size, "\(length) B announced and \(size) came") }
        guard let total = found.total else {
            if let count = found.count { try insist(found.index < count, "block \(found.index) of \(count)") }
            return
        }
        let whole = total / nominal
        let count = max(1, merges ? whole : whole + (total % nominal > 0 ? 1 : 0))
        if let told = found.count { try insist(Int64(told) == count, "\(told) blocks announced and \(count) expected") }
        try insist(Int64(found.index) < count, "block \(found.index) of \(count)")
        let start = Int64(found.index) * nominal
        if let offset = found.offset { try insist(offset == start, "offset \(offset) and not \(start)") }
        let expected = Int64(found.index) == count - 1 ? total - start : nominal
        try insist(size == expected, "block \(found.index) has \(size) B and not \(expected)")
    }
}
