/// Makes damaged texts from good ones: the damage of a typing mistake, a broken disk or a faulty server.
///
/// Knows lines, numbers and `key: value`, which configurations and header blocks share; the words of a format come from
/// the test. The same dice give the same text.
package struct Mutator: Sendable {
    private let seeds: [[UInt8]]
    private let words: [[UInt8]]
    /// Longer results are cut: inputs that are slow only because they are long belong to another test.
    private let limit: Int

    /// - Parameters:
    ///   - seeds: Good texts; at least one.
    ///   - words: Tokens with a meaning in the format, also longer ones: a tag, a tab, a number too large.
    package init(_ seeds: [[UInt8]], words: [String], limit: Int = 64 << 10) {
        self.seeds = seeds
        self.words = words.map { Array($0.utf8) } + Self.numbers.map { Array($0.utf8) }
        self.limit = limit
    }

    /// Limits of whole numbers, for one parser or another.
    package static let numbers = [
        "0", "-0", "-1", "+1", "00", "007", " 7", "7 ", "1e9", "1.5", "0x10", "2147483647", "2147483648", "4294967296",
        "9007199254740993", "9223372036854775806", "9223372036854775807", "9223372036854775808",
        "-9223372036854775807", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
        "18446744073709551616", "99999999999999999999999999999999999999", "NaN", "inf", "٣", "１",
    ]

    package func text(_ dice: inout Dice) -> [UInt8] {
        var bytes = seeds.randomElement(using: &dice) ?? []
        // Mostly little damage: a text that is wrong everywhere is refused at its first byte.
        for _ in 0..<(1 << Int.random(in: 0...3, using: &dice)) { damage(&bytes, &dice) }
        return Array(bytes.prefix(limit))
    }

    private func damage(_ bytes: inout [UInt8], _ dice: inout Dice) {
        switch Int.random(in: 0..<14, using: &dice) {
        case 0: if let at = place(in: bytes, &dice) { bytes[at] ^= 1 << UInt8.random(in: 0...7, using: &dice) }
        case 1: if let at = place(in: bytes, &dice) { bytes[at] = UInt8.random(in: 0...255, using: &dice) }
        case 2: bytes.removeSubrange(piece(of: bytes, &dice))
        case 3:
            let again = Array(bytes[piece(of: bytes, &dice)])
            bytes.insert(contentsOf: again, at: Int.random(in: 0...bytes.count, using: &dice))
        case 4: bytes.removeLast(Int.random(in: 0...(bytes.count / 2), using: &dice))
        case 5, 6:
            bytes.insert(
                contentsOf: words.randomElement(using: &dice) ?? [], at: Int.random(in: 0...bytes.count, using: &dice))
        case 7: bytes.replaceSubrange(piece(of: bytes, &dice), with: words.randomElement(using: &dice) ?? [])
        case 8:
            let other = seeds.randomElement(using: &dice) ?? []
            bytes =
                bytes.prefix(Int.random(in: 0...bytes.count, using: &dice))
                + other.suffix(Int.random(in: 0...other.count, using: &dice))
        case 9: number(&bytes, &dice)
        case 10: repeatMuch(&bytes, &dice)
        default: lines(&bytes, &dice)
        }
    }

    /// Replaces one of the numbers in the text.
    private func number(_ bytes: inout [UInt8], _ dice: inout Dice) {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard let start = bytes.indices.filter({ digits.contains(bytes[$0]) }).randomElement(using: &dice) else {
            return
        }
        let end = bytes[start...].firstIndex { !digits.contains($0) } ?? bytes.endIndex
        bytes.replaceSubrange(start..<end, with: (Self.numbers.randomElement(using: &dice) ?? "0").utf8)
    }

    /// Repeats a short piece so often that something may overflow, nest too deep or take too long.
    private func repeatMuch(_ bytes: inout [UInt8], _ dice: inout Dice) {
        let range = piece(of: bytes, &dice)
        let source = Bool.random(using: &dice) ? Array(bytes[range]) : words.randomElement(using: &dice) ?? []
        let times = 1 << Int.random(in: 1...9, using: &dice)
        var much: [UInt8] = []
        for _ in 0..<times where much.count < limit { much += source }
        bytes.insert(contentsOf: much, at: range.lowerBound)
    }

    /// Drops, doubles, swaps or indents lines, or gives one the value of another.
    private func lines(_ bytes: inout [UInt8], _ dice: inout Dice) {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Array($0) }
        let one = Int.random(in: 0..<lines.count, using: &dice)
        let two = Int.random(in: 0..<lines.count, using: &dice)
        switch Int.random(in: 0..<6, using: &dice) {
        case 0: lines.remove(at: one)
        case 1: lines.insert(lines[one], at: two)
        case 2: lines.swapAt(one, two)
        case 3:
            lines[one] = Array(repeating: UInt8(ascii: " "), count: Int.random(in: 1...4, using: &dice)) + lines[one]
        case 4: lines[one] = Array(Self.key(of: lines[one]) + Self.value(of: lines[two]))
        default: lines[one] = Array(Self.key(of: lines[one])) + (words.randomElement(using: &dice) ?? [])
        }
        bytes = Array(lines.joined(separator: [UInt8(ascii: "\n")]))
    }

    /// The part up to and including `: `; empty if there is none.
    private static func key(of line: [UInt8]) -> ArraySlice<UInt8> { line[..<cut(line)] }
    private static func value(of line: [UInt8]) -> ArraySlice<UInt8> { line[cut(line)...] }
    private static func cut(_ line: [UInt8]) -> Int {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return 0 }
        return line[(colon + 1)...].firstIndex { $0 != UInt8(ascii: " ") } ?? line.endIndex
    }

    private func place(in bytes: [UInt8], _ dice: inout Dice) -> Int? { bytes.indices.randomElement(using: &dice) }

    /// A position, and a length that is mostly short.
    private func piece(of bytes: [UInt8], _ dice: inout Dice) -> Range<Int> {
        let start = Int.random(in: 0...bytes.count, using: &dice)
        let length = Int.random(in: 0...(1 << Int.random(in: 0...6, using: &dice)), using: &dice)
        return start..<min(bytes.count, start + length)
    }
}
