internal import Core

/// A name that a template of a form may use between braces.
enum FormName: String, Hashable, Sendable, CaseIterable {
    /// The part's number, from 0 and from 1.
    case index0, index1
    case count, offset
    /// The first byte after the part, and the last byte of the part.
    case end, last
    case length
    case blockSize = "block_size"
    case total, id, token, credential
    case name, stem, ext, relpath
    case nameInURI = "name:uri"
    case nameInJSON = "name:json"
    case remoteDir = "remote_dir"
    case mime, mtime
    case mtimeMS = "mtime_ms"
    case crc32
    case crc32Upper = "crc32:HEX"
    case crc32Decimal = "crc32:dec"
    case md5, sha1, sha256
    case isLast = "is_last"

    /// Whether it is a digest of the part's bytes.
    var isDigest: Bool {
        switch self {
        case .crc32, .crc32Upper, .crc32Decimal, .md5, .sha1, .sha256: true
        default: false
        }
    }

    /// Whether it becomes a number or a flag in JSON when it stands alone.
    var isBareInJSON: Bool {
        switch self {
        case .index0, .index1, .count, .offset, .end, .last, .length, .blockSize, .total, .mtime, .mtimeMS,
            .crc32Decimal, .isLast:
            true
        default: false
        }
    }

    /// Whether it has a meaning only in requests about one part.
    var isOfPart: Bool {
        switch self {
        case .index0, .index1, .offset, .end, .last, .length, .isLast: true
        default: isDigest
        }
    }
}

/// A text with names in braces, like `bytes {offset}-{last}/{total}`. `{{` and `}}` stand for the braces themselves.
struct FormTemplate: Hashable, Sendable {
    enum Piece: Hashable, Sendable {
        case text(String)
        case name(FormName)
        /// A secret of the destination, read when it is needed.
        case secret(String)
        /// The text as it stands between the quotes of JSON.
        indirect case inJSON(Piece)

        var bare: Piece { if case .inJSON(let piece) = self { piece } else { self } }

        func filled(_ values: FormValues) -> [UInt8] {
            switch self {
            case .text(let text): Array(text.utf8)
            case .name(let name): values[name]
            case .secret(let name): Array((values.secrets[name] ?? "").utf8)
            // The value is escaped already.
            case .inJSON(.name(.nameInJSON)): values[.nameInJSON]
            case .inJSON(let piece): escapedInJSON(piece.filled(values))
            }
        }
    }

    let pieces: [Piece]

    struct SyntaxError: Error { let problem: String }

    init(_ pieces: [Piece]) { self.pieces = pieces }

    init(_ source: String) throws(SyntaxError) {
        var pieces: [Piece] = []
        var text = ""
        var rest = source[...]
        while let letter = rest.popFirst() {
            if letter == "{" || letter == "}", rest.first == letter {
                rest.removeFirst()
                text.append(letter)
            } else if letter == "}" {
                throw SyntaxError(problem: "has a `}` without its `{`; write `}}` for the brace itself")
            } else if letter == "{" {
                guard let end = rest.firstIndex(of: "}") else {
                    throw SyntaxError(problem: "has a `{` without its `}`; write `{{` for the brace itself")
                }
                let name = String(rest[..<end])
                rest = rest[rest.index(after: end)...]
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                pieces.append(try Self.piece(name))
            } else {
                text.append(letter)
            }
        }
        if !text.isEmpty { pieces.append(.text(text)) }
        self.pieces = pieces
    }

    private static func piece(_ name: String) throws(SyntaxError) -> Piece {
        if let known = FormName(rawValue: name) { return .name(known) }
        if name.hasPrefix("secret:") { return .secret(String(name.dropFirst("secret:".count))) }
        let all = FormName.allCases.map(\.rawValue)
        if let near = closest(to: name, among: all) {
            throw SyntaxError(problem: "names `{\(name)}`, which does not exist; did you mean `{\(near)}`?")
        }
        // A name that is like none is not repeated: it may be a part of a secret.
        throw SyntaxError(
            problem: "has something in braces that does not exist; there are: secret:NAME, "
                + all.joined(separator: ", ") + "; write `{{` and `}}` for the braces themselves")
    }

    var names: [FormName] {
        pieces.compactMap { if case .name(let name) = $0.bare { name } else { nil } }
    }

    var secrets: [String] {
        pieces.compactMap { if case .secret(let name) = $0.bare { name } else { nil } }
    }

    func filled(_ values: FormValues) -> [UInt8] { pieces.flatMap { $0.filled(values) } }

    func text(_ values: FormValues) -> String { String(decoding: filled(values), as: UTF8.self) }
}

/// The values of a template's names in one request.
struct FormValues: Sendable {
    let order: UploadOrder
    let plan: PartPlan
    /// `nil` in requests about the whole file.
    var part: PartPlan.Part?
    /// The value of `{block_size}`: a file that is smaller than a block may be announced with a smaller block.
    var blockSize: Int64
    var id = ""
    var token = ""
    /// Secrets by their names in the configuration.
    var secrets: [String: String] = [:]
    var digests: [FormName: String] = [:]

    /// The name under which `credential:` is kept among the secrets. A person cannot use this name.
    static let credential = "{credential}"

    subscript(name: FormName) -> [UInt8] {
        let file = order.name.name
        let index = part?.index ?? 0
        switch name {
        case .index0: return number(Int64(index))
        case .index1: return number(Int64(index) + 1)
        case .count: return number(Int64(plan.count))
        case .offset: return number(part?.offset ?? 0)
        case .end: return number(part?.end ?? plan.size)
        case .last: return number((part?.end ?? plan.size) - 1)
        case .length: return number(part?.length ?? plan.size)
        case .blockSize: return number(blockSize)
        case .total: return number(plan.size)
        case .id: return Array(id.utf8)
        case .token: return Array(token.utf8)
        case .credential: return Array((secrets[Self.credential] ?? "").utf8)
        case .name: return file.bytes
        case .nameInURI: return Array(PercentCoding.encode(file.bytes).utf8)
        case .nameInJSON: return escapedInJSON(file.bytes)
        case .stem: return file.stem.bytes
        case .ext: return file.fileExtension?.bytes ?? []
        case .relpath: return order.name.bytes
        case .remoteDir: return order.name.components.count > 1 ? order.name.parent.bytes : []
        case .mime: return Array(order.mediaType.utf8)
        case .mtime: return number(order.modified / 1_000_000_000)
        case .mtimeMS: return number(order.modified / 1_000_000)
        case .isLast: return Array((part?.isLast ?? false ? "true" : "false").utf8)
        case .crc32, .crc32Upper, .crc32Decimal, .md5, .sha1, .sha256: return Array((digests[name] ?? "").utf8)
        }
    }

    private func number(_ number: Int64) -> [UInt8] { Array("\(number)".utf8) }
}
