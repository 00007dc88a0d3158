internal import Core

/// Reads values from a message (D-Bus specification, "Marshaling"). Every length is compared with the remaining bytes
/// before it is used, and nesting is limited as in the specification.
struct BusReader {
    /// The bytes do not match their signature.
    struct MalformedError: Error, Hashable {}

    /// The whole message: values are aligned from its first byte.
    private let bytes: [UInt8]
    private let isBigEndian: Bool
    private(set) var position: Int

    /// 32 arrays in 32 structures, the limit of the specification.
    private static let deepest = 64

    init(_ bytes: [UInt8], isBigEndian: Bool, at position: Int) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        self.position = position
    }

    /// One value for each complete type of `signature`.
    mutating func values(_ signature: String) throws(MalformedError) -> [BusValue] {
        var types = Array(signature.utf8)[...]
        var values: [BusValue] = []
        while !types.isEmpty { values.append(try value(&types, depth: 0)) }
        return values
    }

    /// The value of the first complete type of `types`, which is removed.
    private mutating func value(_ types: inout ArraySlice<UInt8>, depth: Int) throws(MalformedError) -> BusValue {
        guard depth < Self.deepest, let type = types.popFirst() else { throw MalformedError() }
        switch type {
        case UInt8(ascii: "y"): return .number(type, try number(1))
        case UInt8(ascii: "n"), UInt8(ascii: "q"): return .number(type, try number(2))
        case UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "h"): return .number(type, try number(4))
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"): return .number(type, try number(8))
        case UInt8(ascii: "b"):
            let bits = try number(4)
            guard bits <= 1 else { throw MalformedError() }
            return .number(type, bits)
        case UInt8(ascii: "s"): return .text(type, try text(length: Int(try number(4))))
        case UInt8(ascii: "o"):
            let path = try text(length: Int(try number(4)))
            guard Self.isPath(path) else { throw MalformedError() }
            return .text(type, path)
        case UInt8(ascii: "g"): return .text(type, try text(length: Int(try number(1))))
        case UInt8(ascii: "v"):
            var inner = Array(try text(length: Int(try number(1))).utf8)[...]
            let value = try value(&inner, depth: depth + 1)
            guard inner.isEmpty else { throw MalformedError() }
            return .variant(value)
        case UInt8(ascii: "a"): return try array(&types, depth: depth + 1)
        case UInt8(ascii: "("):
            try align(8)
            var fields: [BusValue] = []
            while types.first != UInt8(ascii: ")") { fields.append(try value(&types, depth: depth + 1)) }
            types.removeFirst()
            // A structure without fields would take no bytes, and an array of them would have no end.
            guard !fields.isEmpty else { throw MalformedError() }
            return .list(fields)
        default: throw MalformedError()
        }
    }

    private mutating func array(_ types: inout ArraySlice<UInt8>, depth: Int) throws(MalformedError) -> BusValue {
        let element = try Self.firstType(of: types)
        types.removeFirst(element.count)
        let length = Int(try number(4))
        try align(Self.alignment(of: element.first))
        guard length <= bytes.count - position else { throw MalformedError() }
        let end = position + length
        if element.elementsEqual([UInt8(ascii: "y")]) {
            defer { position = end }
            return .bytes(Array(bytes[position..<end]))
        }
        let isDictionary = element.first == UInt8(ascii: "{")
        var values: [BusValue] = []
        var entries: [BusValue.Entry] = []
        while position < end {
            var types = element
            if isDictionary {
                entries.append(try entry(&types, depth: depth))
            } else {
                values.append(try value(&types, depth: depth))
            }
        }
        guard position == end else { throw MalformedError() }
        return isDictionary ? .dictionary(entries) : .list(values)
    }

    private mutating func entry(_ types: inout ArraySlice<UInt8>, depth: Int) throws(MalformedError) -> BusValue.Entry {
        try align(8)
        types = types.dropFirst().dropLast()
        let key = try value(&types, depth: depth + 1)
        let held = try value(&types, depth: depth + 1)
        guard types.isEmpty else { throw MalformedError() }
        return BusValue.Entry(key: key, value: held)
    }

    /// The first complete type: `a{sv}` of `a{sv}as`. The types between brackets are not checked.
    private static func firstType(of types: ArraySlice<UInt8>) throws(MalformedError) -> ArraySlice<UInt8> {
        var open = 0
        for index in types.indices {
            switch types[index] {
            case UInt8(ascii: "("), UInt8(ascii: "{"): open += 1
            case UInt8(ascii: ")"), UInt8(ascii: "}"): open -= 1
            case UInt8(ascii: "a"): continue
            default: break
            }
            if open < 0 { break }
            if open == 0 { return types[types.startIndex...index] }
        }
        throw MalformedError()
    }

    private static func alignment(of type: UInt8?) -> Int {
        switch type {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }

    mutating func align(_ size: Int) throws(MalformedError) {
        let aligned = (position + size - 1) / size * size
        guard aligned <= bytes.count else { throw MalformedError() }
        position = aligned
    }

    private mutating func number(_ size: Int) throws(MalformedError) -> UInt64 {
        try align(size)
        guard size <= bytes.count - position else { throw MalformedError() }
        let piece = bytes[position..<(position + size)]
        position += size
        return (isBigEndian ? Array(piece) : piece.reversed()).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Text of `length` bytes and the NUL after it.
    private mutating func text(length: Int) throws(MalformedError) -> String {
        guard length < bytes.count - position, bytes[position + length] == 0 else { throw MalformedError() }
        let piece = bytes[position..<(position + length)]
        guard !piece.contains(0), let text = String(validating: piece, as: UTF8.self) else { throw MalformedError() }
        position += length + 1
        return text
    }

    /// Whether it is valid in a message: the bus disconnects a client that sends an invalid one.
    private static func isPath(_ path: String) -> Bool {
        if path == "/" { return true }
        guard path.utf8.first == UInt8(ascii: "/") else { return false }
        return path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy {
            !$0.isEmpty && $0.allSatisfy { $0.isLetterOrDigit(or: "_") }
        }
    }
}
