/// The JSON keys and types of a type that can be decoded, found by decoding it from nothing.
///
/// One line for each key: `progress.rate?: integer`. A `?` stands behind what may be absent, `[]` behind a list.
enum Shape {
    static func lines(of type: any Decodable.Type) -> [String] {
        let record = Record()
        do { _ = try decode(type, Decoding(path: "", record: record)) } catch {
            record.add("", "cannot be read: \(error)")
        }
        return record.lines
    }

    /// The lines so far, each once.
    private final class Record {
        private(set) var lines: [String] = []
        private var seen: Set<String> = []

        func add(_ path: String, _ type: String) {
            let line = "\(path): \(type)"
            if !path.isEmpty, seen.insert(line).inserted { lines.append(line) }
        }
    }

    /// Raw values of enumerations that cannot list their cases.
    private static let words = ["", "ok", "bytes", "not_found"]

    private static func decode<T: Decodable>(_ type: T.Type, _ decoding: Decoding) throws -> T {
        let (path, record) = (decoding.path, decoding.record)
        if let map = [String: String]() as? T {
            record.add(path, "map of texts")
            return map
        }
        if let cases = T.self as? any CaseIterable.Type, let value = first(of: cases) as? T {
            record.add(path, "word")
            return value
        }
        if T.self is any RawRepresentable.Type {
            for word in words {
                if let value = try? T(from: Decoding(path: path, record: record, word: word)) { return value }
            }
        }
        if !(T.self is any Scalar.Type), !(T.self is any List.Type) { record.add(path, "object") }
        return try T(from: decoding)
    }

    private static func first<C: CaseIterable>(of type: C.Type) -> Any? { type.allCases.first }

    private struct Decoding: Decoder {
        let path: String
        let record: Record
        var word = ""
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }

        func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
            KeyedDecodingContainer(Keyed<Key>(path: path, record: record))
        }
        func unkeyedContainer() -> any UnkeyedDecodingContainer { Items(path: path + "[]", record: record) }
        func singleValueContainer() -> any SingleValueDecodingContainer { Single(decoding: self) }
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let path: String
        let record: Record
        /// Keys that were checked for null: their values may be absent.
        private final class Optionals { var names: Set<String> = [] }
        private let optionals = Optionals()

        init(path: String, record: Record) { (self.path, self.record) = (path, record) }

        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }
        func contains(_ key: Key) -> Bool { true }
        func decodeNil(forKey key: Key) -> Bool {
            optionals.names.insert(key.stringValue)
            return false
        }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            let mark = optionals.names.remove(key.stringValue) == nil ? "" : "?"
            let place = (path.isEmpty ? "" : path + ".") + snakeCase(key.stringValue) + mark
            return try Shape.decode(type, Decoding(path: place, record: record))
        }
        func nestedContainer<N: CodingKey>(keyedBy type: N.Type, forKey key: Key) throws -> KeyedDecodingContainer<N> {
            Decoding(path: path + "." + snakeCase(key.stringValue), record: record).container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            Decoding(path: path + "." + snakeCase(key.stringValue), record: record).unkeyedContainer()
        }
        func superDecoder() throws -> any Decoder { Decoding(path: path, record: record) }
        func superDecoder(forKey key: Key) throws -> any Decoder { Decoding(path: path, record: record) }
    }

    /// A list of one item.
    private struct Items: UnkeyedDecodingContainer {
        let path: String
        let record: Record
        var currentIndex = 0
        var codingPath: [any CodingKey] { [] }
        var count: Int? { 1 }
        var isAtEnd: Bool { currentIndex > 0 }

        mutating func decodeNil() -> Bool { false }
        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            currentIndex += 1
            return try Shape.decode(type, Decoding(path: path, record: record))
        }
        mutating func nestedContainer<N: CodingKey>(keyedBy type: N.Type) throws -> KeyedDecodingContainer<N> {
            currentIndex += 1
            return Decoding(path: path, record: record).container(keyedBy: type)
        }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            currentIndex += 1
            return Decoding(path: path, record: record).unkeyedContainer()
        }
        mutating func superDecoder() throws -> any Decoder { Decoding(path: path, record: record) }
    }

    private struct Single: SingleValueDecodingContainer {
        let decoding: Decoding
        var codingPath: [any CodingKey] { [] }

        func decodeNil() -> Bool { false }
        func decode(_ type: Bool.Type) throws -> Bool { add("flag", false) }
        func decode(_ type: String.Type) throws -> String { add("text", decoding.word) }
        func decode(_ type: Double.Type) throws -> Double { add("number", 0) }
        func decode(_ type: Float.Type) throws -> Float { add("number", 0) }
        func decode(_ type: Int.Type) throws -> Int { add("integer", 0) }
        func decode(_ type: Int8.Type) throws -> Int8 { add("integer", 0) }
        func decode(_ type: Int16.Type) throws -> Int16 { add("integer", 0) }
        func decode(_ type: Int32.Type) throws -> Int32 { add("integer", 0) }
        func decode(_ type: Int64.Type) throws -> Int64 { add("integer", 0) }
        func decode(_ type: UInt.Type) throws -> UInt { add("integer", 0) }
        func decode(_ type: UInt8.Type) throws -> UInt8 { add("integer", 0) }
        func decode(_ type: UInt16.Type) throws -> UInt16 { add("integer", 0) }
        func decode(_ type: UInt32.Type) throws -> UInt32 { add("integer", 0) }
        func decode(_ type: UInt64.Type) throws -> UInt64 { add("integer", 0) }
        func decode<T: Decodable>(_ type: T.Type) throws -> T { try Shape.decode(type, decoding) }

        private func add<T>(_ type: String, _ value: T) -> T {
            decoding.record.add(decoding.path, type)
            return value
        }
    }
}

/// `verifiedBy` as it is written in JSON: `verified_by`.
private func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { text, letter in
        if letter.isUppercase { text += "_" + letter.lowercased() } else { text.append(letter) }
    }
}

private protocol Scalar {}
extension Bool: Scalar {}
extension String: Scalar {}
extension Double: Scalar {}
extension Int: Scalar {}
extension Int64: Scalar {}
extension Int32: Scalar {}
extension UInt64: Scalar {}
private protocol List {}
extension Array: List {}
