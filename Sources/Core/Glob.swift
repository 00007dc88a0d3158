/// A pattern for file names, compiled once and matched against bytes.
///
/// | written | matches |
/// |---|---|
/// | `*` | any bytes but `/`, also none |
/// | `**` | any bytes, also `/`; `**/` also matches nothing, so that `**/x` finds `x` at the top |
/// | `?` | one character but `/` (one byte where the name is no UTF-8) |
/// | `[a-z]`, `[!a-z]` | one byte (not) of the set |
/// | `\x` | `x` itself |
///
/// Upper and lower case of ASCII letters are the same: cameras write `CLIP.MP4`, people write `*.mp4`.
package struct Glob: Hashable, Sendable {
    private enum Piece: Hashable, Sendable {
        /// Lower case.
        case byte(UInt8)
        case character
        case set(ByteSet)
        case run
        case deepRun
        /// `**/`: nothing, or anything that ends with a slash.
        case folders
    }

    private let pieces: [Piece]
    /// What a name ends with, where the pattern is `*` and plain bytes; in lower case.
    private let ending: [UInt8]?
    /// The pattern holds a `/`, so it is matched with the path below the folder, else with the name alone.
    package let isForPaths: Bool

    package init(_ pattern: String) {
        pieces = Self.compile(Array(pattern.utf8))
        isForPaths = pattern.utf8.contains(UInt8(ascii: "/"))
        var plain: [UInt8] = []
        for piece in pieces.dropFirst() { if case .byte(let byte) = piece { plain.append(byte) } }
        ending = pieces.first == .run && plain.count == pieces.count - 1 ? plain : nil
    }

    /// - Parameter name: A path below the folder where ``isForPaths``, else a name, which holds no slash.
    package func matches(_ name: FilePath) -> Bool { name.bytes.withUnsafeBufferPointer { matches($0) } }

    package func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if let ending, !isForPaths {
            guard name.count >= ending.count else { return false }
            let start = name.count - ending.count
            for index in 0..<ending.count where name[start + index].lowered != ending[index] { return false }
            return true
        }
        return walk(name)
    }

    /// Goes along both, and on a mismatch back to the last run and lets it take more.
    ///
    /// Only the last `*` and the last `**` need to be remembered: what an earlier one could take, a later one could too.
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
                    let taken = taken(by: pieces[piece], of: name, at: at)
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
                run = (last.piece, last.at + 1)
                (piece, at) = (last.piece, last.at + 1)
            } else if let last = deepRun, let next = next(after: last.at, in: name, atSlash: last.isFolders) {
                deepRun = (last.piece, next, last.isFolders)
                run = nil
                (piece, at) = (last.piece, next)
            } else {
                return false
            }
        }
    }

    /// Where a deep run may end next.
    private func next(after start: Int, in name: UnsafeBufferPointer<UInt8>, atSlash: Bool) -> Int? {
        var at = start
        while at < name.count {
            at += 1
            if !atSlash || name[at - 1] == slash { return at }
        }
        return nil
    }

    /// How many bytes the piece takes; 0 when it does not match.
    private func taken(by piece: Piece, of name: UnsafeBufferPointer<UInt8>, at: Int) -> Int {
        guard at < name.count else { return 0 }
        let byte = name[at]
        switch piece {
        case .byte(let wanted): return byte.lowered == wanted ? 1 : 0
        case .set(let set): return byte != slash && set.contains(byte) ? 1 : 0
        case .character:
            if byte == slash { return 0 }
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            guard at + length <= name.count else { return 1 }
            return (at + 1..<at + length).allSatisfy { name[$0] & 0xC0 == 0x80 } ? length : 1
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
                if let (set, end) = ByteSet.parse(pattern, from: at + 1) {
                    pieces.append(.set(set))
                    at = end
                } else {
                    // An unclosed bracket stands for itself, as in the shell.
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

/// The bytes that a bracket expression allows.
private struct ByteSet: Hashable, Sendable {
    private var ranges: [ClosedRange<UInt8>] = []
    private var isInverted = false

    func contains(_ byte: UInt8) -> Bool {
        let found = ranges.contains { $0.contains(byte.lowered) || $0.contains(byte.raised) }
        return found != isInverted
    }

    /// - Returns: The set and the place behind its closing bracket; `nil` when there is none.
    static func parse(_ pattern: [UInt8], from start: Int) -> (ByteSet, Int)? {
        var set = ByteSet()
        var at = start
        if at < pattern.count, pattern[at] == UInt8(ascii: "!") || pattern[at] == UInt8(ascii: "^") {
            set.isInverted = true
            at += 1
        }
        let first = at
        while at < pattern.count {
            // A bracket that comes first is one of the set.
            if pattern[at] == UInt8(ascii: "]"), at > first { return (set, at + 1) }
            let lower = pattern[at]
            if at + 2 < pattern.count, pattern[at + 1] == UInt8(ascii: "-"), pattern[at + 2] != UInt8(ascii: "]") {
                let upper = pattern[at + 2]
                // A range that runs backwards holds nothing.
                if lower <= upper { set.ranges.append(lower...upper) }
                at += 3
            } else {
                set.ranges.append(lower...lower)
                at += 1
            }
        }
        return nil
    }
}

extension UInt8 {
    /// In lower case, where it is an ASCII letter.
    var lowered: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
    fileprivate var raised: UInt8 { self >= 0x61 && self <= 0x7A ? self & 0xDF : self }
}
