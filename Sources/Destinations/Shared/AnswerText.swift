internal import Core

// The body of an answer as a text, regardless of its leading bytes.

/// The start of the text in a body: after byte order marks, blanks and invisible characters. Slow services send many of
/// these before their answer. The zero bytes between the characters of UTF-16 and UTF-32 are left out.
func textStart(of body: [UInt8]) -> ArraySlice<UInt8> {
    let isWide = body.prefix(4).contains(0) || wideMarks.contains { body.starts(with: $0) }
    var rest = (isWide ? body.filter { $0 != 0 } : body)[...]
    while let first = rest.first {
        if first <= 0x20 {
            rest.removeFirst()
        } else if let blank = unseen.first(where: { rest.starts(with: $0) }) {
            rest.removeFirst(blank.count)
        } else {
            break
        }
    }
    return rest
}

private let wideMarks: [[UInt8]] = [[0xFF, 0xFE], [0xFE, 0xFF]]

/// Unicode's white space, characters without a width, and byte order marks, in UTF-8 unless they are marks of another
/// coding.
private let unseen: [[UInt8]] = {
    var scalars: [ClosedRange<UInt32>] = [0x80...0xA0, 0xAD...0xAD, 0x1680...0x1680, 0x180E...0x180E, 0x2000...0x200F]
    scalars += [0x2028...0x202F, 0x205F...0x206F, 0x3000...0x3000, 0xFEFF...0xFEFF]
    return wideMarks + scalars.joined().compactMap { Unicode.Scalar($0).map { Array(String($0).utf8) } }
}()
