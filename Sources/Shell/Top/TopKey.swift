/// A key that a person presses in `top`.
enum TopKey: Hashable, Sendable {
    case letter(Character)
    case up, down, pageUp, pageDown, first, last, enter, tab, escape
    /// Ctrl-C and Ctrl-D.
    case interrupt
    /// Ctrl-Z.
    case suspend

    /// The keys whose bytes a terminal has sent. Sequences of other keys are ignored.
    ///
    /// The sequences are those of ECMA-48 as xterm sends them ("XTerm Control Sequences", PC-Style Function Keys).
    static func keys(in bytes: [UInt8]) -> [TopKey] {
        var keys: [TopKey] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 0x03, 0x04: keys.append(.interrupt)
            case 0x09: keys.append(.tab)
            case 0x1A: keys.append(.suspend)
            case 0x0A, 0x0D: keys.append(.enter)
            case 0x1B:
                guard let kind = rest.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else {
                    keys.append(.escape)
                    continue
                }
                rest.removeFirst()
                let parameters = rest.prefix { (0x20...0x3F).contains($0) }
                rest = rest.dropFirst(parameters.count)
                guard let final = rest.popFirst() else { continue }
                if let key = key(final, String(decoding: parameters, as: UTF8.self)) { keys.append(key) }
            case 0x20...0x7E: keys.append(.letter(Character(Unicode.Scalar(byte))))
            default: continue
            }
        }
        return keys
    }

    private static func key(_ final: UInt8, _ parameters: String) -> TopKey? {
        switch (final, parameters) {
        case (UInt8(ascii: "A"), _): .up
        case (UInt8(ascii: "B"), _): .down
        case (UInt8(ascii: "H"), _), (UInt8(ascii: "~"), "1"), (UInt8(ascii: "~"), "7"): .first
        case (UInt8(ascii: "F"), _), (UInt8(ascii: "~"), "4"), (UInt8(ascii: "~"), "8"): .last
        case (UInt8(ascii: "~"), "5"): .pageUp
        case (UInt8(ascii: "~"), "6"): .pageDown
        default: nil
        }
    }
}
