/// A message of the bus (D-Bus specification, "Message format"), its body not yet read.
struct BusMessage: Hashable, Sendable {
    enum Kind: UInt8, Sendable {
        case call = 1, reply, failure, signal
    }

    let kind: Kind
    /// The serial of the call that this message answers.
    var replyTo: UInt32?
    var path: String?
    var interface: String?
    var member: String?
    var failure: String?
    var sender: String?
    private var signature = ""
    private let bytes: [UInt8]
    private let isBigEndian: Bool
    private let body: Int

    /// The values of the body; `nil` when they do not have the types in the message's signature.
    var values: [BusValue]? {
        var reader = BusReader(bytes, isBigEndian: isBigEndian, at: body)
        guard let values = try? reader.values(signature), reader.position == bytes.count else { return nil }
        return values
    }

    // MARK: Reading

    static let shortest = 16

    /// The length of the message that begins with `start`; `nil` when `start` is too short to tell.
    static func length(_ start: ArraySlice<UInt8>) throws(BusError) -> Int? {
        guard start.count >= shortest else { return nil }
        let isBigEndian = start.first == UInt8(ascii: "B")
        guard isBigEndian || start.first == UInt8(ascii: "l"), start[start.startIndex + 3] == 1 else {
            throw BusError("the data from it is not D-Bus")
        }
        func number(_ offset: Int) -> Int {
            let piece = start[(start.startIndex + offset)..<(start.startIndex + offset + 4)]
            return (isBigEndian ? Array(piece) : piece.reversed()).reduce(0) { $0 << 8 | Int($1) }
        }
        let (body, fields) = (number(4), number(12))
        let length = shortest + (fields + 7) / 8 * 8 + body
        // The specification's own limits: 64 MiB for an array and 128 MiB for a message.
        guard fields <= 64 << 20, length <= 128 << 20 else { throw BusError("the data from it is not D-Bus") }
        return length
    }

    /// - Parameter bytes: As many as ``length(_:)`` returned.
    /// - Returns: `nil` for an unknown kind, which the specification requires to be ignored.
    /// - Throws: When the header is damaged: the rest cannot be trusted then.
    static func read(_ bytes: [UInt8]) throws(BusError) -> BusMessage? {
        let isBigEndian = bytes.first == UInt8(ascii: "B")
        // The fields' array begins at byte 12, with its length.
        var reader = BusReader(bytes, isBigEndian: isBigEndian, at: 12)
        var fields: [BusValue] = []
        do {
            if case .list(let found) = try reader.values("a(yv)").first { fields = found }
            try reader.align(8)
        } catch { throw BusError("a message from it has a damaged header") }
        guard bytes.count > 1, let kind = Kind(rawValue: bytes[1]) else { return nil }
        var message = BusMessage(kind: kind, bytes: bytes, isBigEndian: isBigEndian, body: reader.position)
        for case .list(let field) in fields where field.count == 2 {
            guard case .number(_, let code) = field[0], case .variant(let value) = field[1] else { continue }
            switch (code, value) {
            case (1, .text(UInt8(ascii: "o"), let path)): message.path = path
            case (2, .text(UInt8(ascii: "s"), let name)): message.interface = name
            case (3, .text(UInt8(ascii: "s"), let name)): message.member = name
            case (4, .text(UInt8(ascii: "s"), let name)): message.failure = name
            case (5, .number(UInt8(ascii: "u"), let serial)): message.replyTo = UInt32(truncatingIfNeeded: serial)
            case (7, .text(UInt8(ascii: "s"), let name)): message.sender = name
            case (8, .text(UInt8(ascii: "g"), let types)): message.signature = types
            default: break  // fields that are not needed here, or are not known yet
            }
        }
        return message
    }

    private init(kind: Kind, bytes: [UInt8], isBigEndian: Bool, body: Int) {
        self.kind = kind
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        self.body = body
    }

    // MARK: Writing

    /// A call that starts no service which is not running (flag 0x2).
    struct Call: Hashable, Sendable {
        var destination: String
        var path: String
        var interface: String
        var member: String
        /// All of them are text.
        var arguments: [String] = []

        /// - Parameter serial: Not 0; the answer names it.
        func bytes(serial: UInt32) -> [UInt8] {
            var body = BusWriter()
            for argument in arguments { body.text(argument) }
            var head = BusWriter()
            head.bytes = [UInt8(ascii: "l"), Kind.call.rawValue, 0x2, 1]
            head.number(UInt32(body.bytes.count))
            head.number(serial)
            head.number(0)  // the length of the rest, known below
            head.field(1, "o", path)
            head.field(2, "s", interface)
            head.field(3, "s", member)
            head.field(6, "s", destination)
            if !arguments.isEmpty { head.field(8, "g", String(repeating: "s", count: arguments.count)) }
            head.set(UInt32(head.bytes.count - shortest), at: 12)
            head.align(8)
            return head.bytes + body.bytes
        }
    }
}

/// Writes the few types that calls need, little endian.
private struct BusWriter {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) { while bytes.count % size != 0 { bytes.append(0) } }

    mutating func number(_ value: UInt32) {
        align(4)
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func set(_ value: UInt32, at offset: Int) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }

    mutating func text(_ text: String) {
        number(UInt32(text.utf8.count))
        bytes += text.utf8
        bytes.append(0)
    }

    /// A field of the header: `(yv)`.
    mutating func field(_ code: UInt8, _ type: Unicode.Scalar, _ value: String) {
        align(8)
        bytes += [code, 1, UInt8(ascii: type), 0]
        if type == "g" {
            bytes.append(UInt8(truncatingIfNeeded: value.utf8.count))
            bytes += value.utf8
            bytes.append(0)
        } else {
            text(value)
        }
    }
}

/// The reason why the bus cannot be used, for a person.
struct BusError: Error, Hashable, Sendable, CustomStringConvertible {
    let description: String
    /// There is no socket: trying again is useless until there is one.
    var isMissing = false

    init(_ description: String) { self.description = description }
}
