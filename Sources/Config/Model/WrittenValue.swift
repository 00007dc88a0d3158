internal import Core

/// A value in the form of a configuration.
package indirect enum WrittenValue: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package let key: String
        package let value: WrittenValue
    }

    /// Quoted wherever YAML could read it as something else.
    case text(String)
    /// A word, an amount or a time, which needs no quotes.
    case plain(String)
    case number(Int64)
    case flag(Bool)
    case list([WrittenValue])
    case mapping([Field])

    static func rate(_ rate: Int64?) -> WrittenValue {
        .plain(rate.map { $0 == 0 ? "0" : writtenBytes($0) + "/s" } ?? "unlimited")
    }

    /// For people: without quotes.
    var text: String {
        switch self {
        case .text(let text): FilePath(text).display
        case .list(let items): items.map(\.text).joined(separator: ", ")
        default: yaml
        }
    }

    /// On one line (YAML 1.1, chapter 7).
    package var yaml: String {
        switch self {
        case .text(let text): scalar(text)
        case .plain(let word): word
        case .number(let number): "\(number)"
        case .flag(let flag): "\(flag)"
        case .list(let items): "[\(items.map(\.yaml).joined(separator: ", "))]"
        case .mapping(let fields):
            "{\(fields.map { "\(scalar($0.key)): \($0.value.yaml)" }.joined(separator: ", "))}"
        }
    }
}

/// A text in YAML: plain where it cannot be misread, otherwise in double quotes.
func scalar(_ text: String) -> String {
    let isPlain = text.utf8.enumerated().allSatisfy { index, byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "/"): true
        default: index > 0 && (isNameByte(byte) || byte == UInt8(ascii: "@") || byte == UInt8(ascii: "+"))
        }
    }
    if isPlain, !text.isEmpty, yaml11Meaning(text) == nil, text.lowercased() != "null" { return text }
    var out = "\""
    for scalar in text.unicodeScalars {
        if scalar == "\"" || scalar == "\\" {
            out += "\\\(scalar)"
        } else if isShown(scalar) {
            out.unicodeScalars.append(scalar)
        } else {
            let digits = String(scalar.value, radix: 16)
            out += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
        }
    }
    return out + "\""
}

/// Whether it neither acts on a terminal nor is refused by libyaml's reader (YAML 1.1, section 5.1).
private func isShown(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .unassigned, .privateUse, .surrogate: false
    default: printable(String(scalar)) == String(scalar)
    }
}
