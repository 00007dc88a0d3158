/// A pattern for file names, compiled once and matched against bytes.
///
/// | written | matches |
/// |---|---|
/// | `*` | any characters except `/`, also none |
/// | `**` | any characters, also `/`; `**/` also matches nothing, so that `**/x` finds `x` at the top |
/// | `?` | one character except `/` |
/// | `[a-z]`, `[!a-z]` | one character except `/` that is (not) in the set |
/// | `\x` | `x` itself |
///
/// A character is a Unicode scalar, or a byte where the name is not UTF-8. No pattern matches half a character.
///
/// Upper and lower case of ASCII letters are equal: cameras write `CLIP.MP4`, people write `*.mp4`.
package struct Glob: Hashable, Sendable {
    private enum Piece: Hashable, Sendable {
        /// Lower case.
        case byte(UInt8)
        case character
        case set(GlobCharacterSet)
        case run
        case deepRun
        /// `**/`: nothing, or any text that ends with a slash.
        case folders
    }

    private let pieces: [Piece]
    /// The ending of matching names in lower case, where the pattern is `*` and plain bytes.
    private let ending: [UInt8]?
    /// The pattern contains a `/`, so it is matched against the path below the folder; otherwise against the name
    /// alone.
    package let matchesPath: Bool

    /// Whether a path contains a character that a pattern gives a meaning to.
    package static func hasWildcard(_ path: FilePath) -> Bool {
        path.bytes.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }
    }

    package init(_ pattern: String) { self.init(bytes: Array(pattern.utf8)) }

    /// For a pattern that may be invalid text.
    package init(bytes pattern: [UInt8]) {
        pieces = Self.compile(pattern)
        matchesPath = pattern.contains(UInt8(ascii: "/"))
        var plain: [UInt8] = []
        for piece in pieces.dropFirst() { if case .byte(let byte) = piece { plain.append(byte) } }
        ending = pieces.first == .run && plain.count == pieces.count - 1 ? plain : nil
    }

    /// - Parameter name: A path below the folder where ``matchesPath``, otherwise a name, which contains no slash.
    package func matches(_ name: FilePath) -> Bool { name.bytes.withUnsafeBufferPointer { matches($0) } }

    package func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if let ending, !matchesPath {
            guard name.count >= ending.count else { return false }
            let start = name.count - ending.count
            for index in 0..<ending.count where name[start + index].lowered != ending[index] { return false }
            return true
        }
        return walk(name)
    }

    /// Walks along pattern and name. On a mismatch it goes back to the last run and lets it take more.
    ///
    /// Only the last `*` and the last `**` need to be remembered: whatever an earlier one could take, a later one could
    /// too. That holds because all of them stop between the same characters.
    private func walk(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        var piece = 0
        var at = 0
        var run: (piece: Int, at: Int)?
        var deepRun: (piece: Int, at: Int, isFolders: Bool)?
        while true {
            if piece < pieces.count {
                switch pieces[piece] {
                case .run:
                    run = (piece + 1, at)
                    piece += 1
                    continue
                case .deepRun, .folders:
                    deepRun = (piece + 1, at, pieces[piece] == .folders)
                    run = nil
                    piece += 1
                    continue
                case .byte, .character, .set:
                    let taken = matchedLength(by: pieces[piece], of: name, at: at)
                    if taken > 0 {
                        piece += 1
                        at += taken
                        continue
                    }
                }
            } else if at == name.count {
                return true
            }
            if let last = run, last.at < name.count, name[last.at] != slash {
                let next = last.at + GlobCharacter(in: name, at: last.at).length
                run = (last.piece, next)
                (piece, at) = (last.piece, next)
            } else if let last = deepRun, let next = next(after: last.at, in: name, atSlash: last.isFolders) {
                deepRun = (last.piece, next, last.isFolders)
                run = nil
                (piece, at) = (last.piece, next)
            } else {
                return false
            }
        }
    }

    /// Where a `**` may end next.
    private func next(after start: Int, in name: UnsafeBufferPointer<UInt8>, atSlash: Bool) -> Int? {
        guard start < name.count else { return nil }
        if !atSlash { return start + GlobCharacter(in: name, at: start).length }
        return name[start...].firstIndex(of: slash).map { $0 + 1 }
    }

    /// How many bytes the piece matches; 0 when it does not match.
    private func matchedLength(by piece: Piece, of name: UnsafeBufferPointer<UInt8>, at: Int) -> Int {
        guard at < name.count else { return 0 }
        let byte = name[at]
        switch piece {
        case .byte(let wanted): return byte.lowered == wanted ? 1 : 0
        case .set(let set):
            let letter = GlobCharacter(in: name, at: at)
            return byte != slash && set.contains(letter) ? letter.length : 0
        case .character: return byte == slash ? 0 : GlobCharacter(in: name, at: at).length
        case .run, .deepRun, .folders: return 0
        }
    }

    private static func compile(_ pattern: [UInt8]) -> [Piece] {
        var pieces: [Piece] = []
        var at = 0
        while at < pattern.count {
            switch pattern[at] {
            case UInt8(ascii: "*"):
                let stars = pattern[at...].prefix { $0 == UInt8(ascii: "*") }.count
                let isAtStart = at == 0 || pattern[at - 1] == slash
                at += stars
                if stars == 1 {
                    pieces.append(.run)
                } else if isAtStart, at < pattern.count, pattern[at] == slash {
                    pieces.append(.folders)
                    at += 1
                } else {
                    pieces.append(.deepRun)
                }
            case UInt8(ascii: "?"):
                pieces.append(.character)
                at += 1
            case UInt8(ascii: "["):
                if let (set, end) = GlobCharacterSet.parse(pattern, from: at + 1) {
                    pieces.append(.set(set))
                    at = end
                } else {
                    // An unclosed bracket represents itself, as in the shell.
                    pieces.append(.byte(pattern[at]))
                    at += 1
                }
            case UInt8(ascii: "\\") where at + 1 < pattern.count:
                pieces.append(.byte(pattern[at + 1].lowered))
                at += 2
            default:
                pieces.append(.byte(pattern[at].lowered))
                at += 1
            }
        }
        return pieces
    }
}

private let slash = UInt8(ascii: "/")

/// One character of a name or of a pattern.
private struct GlobCharacter {
    /// The scalar; a byte that is not part of one is numbered after all scalars.
    let value: UInt32
    /// In bytes.
    let length: Int

    init<Bytes: RandomAccessCollection>(in bytes: Bytes, at start: Int)
    where Bytes.Element == UInt8, Bytes.Index == Int {
        let first = bytes[start]
        let length = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1
        if first < 0x80 {
            (value, self.length) = (UInt32(first), 1)
            return
        }
        if length > 1, start + length <= bytes.endIndex {
            var value = UInt32(first) & (0xFF >> (UInt32(length) + 1))
            var isWhole = true
            for index in start + 1..<start + length {
                isWhole = isWhole && bytes[index] & 0xC0 == 0x80
                value = value << 6 | UInt32(bytes[index] & 0x3F)
            }
            if isWhole, let scalar = Unicode.Scalar(value), UTF8.width(scalar) == length {
                (self.value, self.length) = (value, length)
                return
            }
        }
        (value, self.length) = (0x11_0000 + UInt32(first), 1)
    }
}

/// The characters that a bracket expression allows.
private struct GlobCharacterSet: Hashable, Sendable {
    private var ranges: [ClosedRange<UInt32>] = []
    private var isInverted = false

    func contains(_ letter: GlobCharacter) -> Bool {
        let byte = UInt8(exactly: letter.value)
        let (low, high) = (byte.map { UInt32($0.lowered) }, byte.map { UInt32($0.raised) })
        let found = ranges.contains { $0.contains(low ?? letter.value) || $0.contains(high ?? letter.value) }
        return found != isInverted
    }

    /// - Returns: The set and the place after its closing bracket; `nil` when there is none.
    static func parse(_ pattern: [UInt8], from start: Int) -> (GlobCharacterSet, Int)? {
        var set = GlobCharacterSet()
        var at = start
        if at < pattern.count, pattern[at] == UInt8(ascii: "!") || pattern[at] == UInt8(ascii: "^") {
            set.isInverted = true
            at += 1
        }
        let first = at
        while at < pattern.count {
            // A bracket that comes first is a member of the set.
            if pattern[at] == UInt8(ascii: "]"), at > first { return (set, at + 1) }
            let lower = GlobCharacter(in: pattern, at: at)
            at += lower.length
            if at + 1 < pattern.count, pattern[at] == UInt8(ascii: "-"), pattern[at + 1] != UInt8(ascii: "]") {
                let upper = GlobCharacter(in: pattern, at: at + 1)
                // A range that runs backwards is empty.
                if lower.value <= upper.value { set.ranges.append(lower.value...upper.value) }
                at += 1 + upper.length
            } else {
                set.ranges.append(lower.value...lower.value)
            }
        }
        return nil
    }
}

extension UInt8 {
    fileprivate var raised: UInt8 { self >= 0x61 && self <= 0x7A ? self & 0xDF : self }
}
