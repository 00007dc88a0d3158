internal import Core

/// Reads one kind of value, and describes its form.
struct Reader<Value>: Sendable {
    /// Completes "takes …": `a length of time like …`.
    let expected: String
    /// Whether a plain `no` or `010` is refused although it could be read as text.
    var isText = false
    /// Whether quotes are refused: a number in quotes is a text.
    var isPlain = false
    /// The form, for tables and the JSON Schema.
    var kind: ValueKind = .text
    let read: @Sendable (String) throws(ValueError) -> Value
}

/// The reason why a reader refuses a text.
struct ValueError: Error {
    /// The whole message; `nil` for "takes …, not `…`".
    var text: String?
    /// The place in the text, in Unicode scalars from its start.
    var offset = 0
    /// The message may have a part of the text, which must not be shown where the text may be a secret.
    var repeatsValue = true

    /// The message "takes …, not `…`" is sufficient.
    static let plain = ValueError()

    init(_ text: String? = nil, offset: Int = 0, repeatsValue: Bool = true) {
        self.text = text
        self.offset = offset
        self.repeatsValue = repeatsValue
    }
}

/// The meaning of a plain text in YAML 1.1 where it differs from its appearance; `nil` for all others.
///
/// Values are read as written here, but an editor, a linter or the next program may follow YAML 1.1, and a person may
/// have meant either.
func yaml11Meaning(_ text: String) -> String? {
    switch text.lowercased() {
    case "no", "off", "false": return "YAML 1.1 reads it as `false`"
    case "yes", "on", "true": return "YAML 1.1 reads it as `true`"
    default: break
    }
    let digits = text.utf8.drop { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }
    func all(_ set: ClosedRange<UInt8>, _ part: some Sequence<UInt8>) -> Bool { part.allSatisfy(set.contains) }
    let decimal = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard let first = digits.first, decimal.contains(first) else { return nil }
    if digits.count > 1, first == UInt8(ascii: "0"), all(UInt8(ascii: "0")...UInt8(ascii: "7"), digits.dropFirst()),
        let value = Int(digits.map { String(UnicodeScalar($0)) }.joined(), radix: 8)
    {
        return "YAML 1.1 reads it as octal, which is \(value)"
    }
    let parts = digits.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    if parts.count > 1, parts.count <= 4, parts.allSatisfy({ !$0.isEmpty && $0.count <= 2 && all(decimal, $0) }) {
        let value = parts.reduce(0) { $0 * 60 + (Int(String(decoding: $1, as: UTF8.self)) ?? 0) }
        return "YAML 1.1 reads it in base 60, which is \(value)"
    }
    return nil
}

extension Reader where Value == Bool {
    static var flag: Reader {
        Reader(expected: "`true` or `false`", isPlain: true, kind: .flag) { text throws(ValueError) in
            switch text {
            case "true": return true
            case "false": return false
            default: throw .plain
            }
        }
    }
}

extension Reader where Value == Int {
    /// 1 to 100.
    static var percent: Reader {
        Reader(expected: "a share from 1% to 100%, like `30%`", kind: .share) { text throws(ValueError) in
            guard text.hasSuffix("%") else {
                throw Int(text) == nil
                    ? .plain : ValueError("takes a share with its `%`, like `30%`, not a bare number")
            }
            let digits = String(text.dropLast())
            guard let value = Int(digits), String(value) == digits, (1...100).contains(value) else { throw .plain }
            return value
        }
    }

    static func whole(_ range: ClosedRange<Int>) -> Reader {
        Reader(
            expected: "a whole number from \(range.lowerBound) to \(range.upperBound)", isPlain: true,
            kind: .whole(range)
        ) { text throws(ValueError) in
            // `Int` accepts `+5` and `007`, which are not the form that it writes.
            guard let value = Int(text), String(value) == text, range.contains(value) else { throw .plain }
            return value
        }
    }
}

extension Reader where Value == String {
    /// One line of text.
    static var text: Reader { text("a text") }

    static func text(_ expected: String, longest: Int = 4096) -> Reader {
        Reader(expected: expected, isText: true) { text throws(ValueError) in
            guard !text.isEmpty else { throw ValueError("is empty; it takes \(expected)") }
            guard text.utf8.count <= longest else {
                throw ValueError("is longer than \(longest) bytes", repeatsValue: false)
            }
            try refuseControls(in: text)
            return text
        }
    }

    /// A name of a folder, destination or context key.
    static var name: Reader {
        let expected = "a name of 1 to 64 letters, digits, `_`, `.` or `-`"
        return Reader(expected: expected, isText: true, kind: .name) { text throws(ValueError) in
            guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(isNameByte), text != ".", text != ".." else {
                throw .plain
            }
            return text
        }
    }

    /// The name of metadata or of a form's field: printable ASCII except space, comma and colon (tus 1.0,
    /// Upload-Metadata).
    static var fieldName: Reader {
        Reader(expected: "a name of 1 to 64 printable ASCII characters without space, comma or colon", isText: true) {
            text throws(ValueError) in
            let isFit = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2C && $0 != 0x3A }
            guard isFit, (1...64).contains(text.utf8.count) else { throw .plain }
            return text
        }
    }

    /// The name of a header (RFC 9110, section 5.1).
    static var headerName: Reader {
        let expected = "a header's name: 1 to 64 letters, digits, `-` and `_`, without space or colon"
        return Reader(expected: expected, isText: true) { text throws(ValueError) in
            guard isToken(text), text.utf8.count <= 64 else { throw .plain }
            return text
        }
    }

    static func word(of words: [String]) -> Reader {
        let expected =
            words.count == 2 ? "`\(words[0])` or `\(words[1])`" : "one of " + words.joined(separator: ", ")
        return Reader(expected: expected, kind: .word(words)) { text throws(ValueError) in
            guard words.contains(text) else {
                guard let near = nearest(to: text, among: words) else { throw .plain }
                throw ValueError("takes \(expected), not \(quoted(text)); did you mean `\(near)`?")
            }
            return text
        }
    }
}

extension Reader where Value: RawRepresentable & CaseIterable & Sendable, Value.RawValue == String {
    /// One of the words of an enum.
    static var choice: Reader {
        let word = Reader<String>.word(of: Value.allCases.map(\.rawValue))
        return Reader(expected: word.expected, kind: word.kind) { text throws(ValueError) in
            guard let value = Value(rawValue: try word.read(text)) else { throw .plain }
            return value
        }
    }
}

func refuseControls(in text: String) throws(ValueError) {
    for (offset, scalar) in text.unicodeScalars.enumerated() where scalar.properties.generalCategory == .control {
        throw ValueError("has a line break or another control character in it", offset: offset, repeatsValue: false)
    }
}

func isNameByte(_ byte: UInt8) -> Bool { byte.isLetterOrDigit(or: "_.-") }
