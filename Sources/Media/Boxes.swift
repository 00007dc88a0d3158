internal import Core

/// A part of an MP4 or QuickTime file: a name of four letters, and the content up to `end` (ISO/IEC 14496-12, 4.2).
struct Box {
    let type: FourCC
    /// The offsets of its header, of its content, and of the next box.
    let start: Int64
    let content: Int64
    let end: Int64
    /// Its size field is 0: it extends to the end.
    let isOpenEnded: Bool

    /// The boxes inside it, from `skipping` bytes after the start of its content.
    func inside(of reader: HeaderReader, skipping: Int64 = 0) -> Boxes {
        Boxes(reader, from: content + skipping, to: end)
    }
}

/// The boxes in a range of a file, one after the other, by their headers alone.
struct Boxes {
    enum Step {
        case box(Box)
        /// The last box ended exactly at the end of the range.
        case end
        /// There is no box at this place, or one that does not fit.
        case broken(String)
    }

    private let reader: HeaderReader
    private var next: Int64
    private let end: Int64

    init(_ reader: HeaderReader, from start: Int64, to end: Int64) {
        self.reader = reader
        next = start
        self.end = end
    }

    mutating func step() throws(HeaderReader.Stop) -> Step { try step(isNumbered: false) }

    /// The next box of a list whose boxes have numbers instead of names; `nil` at the end.
    mutating func numbered() throws(HeaderReader.Stop) -> Box? {
        if case .box(let box) = try step(isNumbered: true) { return box }
        return nil
    }

    private mutating func step(isNumbered: Bool) throws(HeaderReader.Stop) -> Step {
        if next == end { return .end }
        guard next < end, let head = try reader.all(at: next, 8), end - next >= 8 else {
            return .broken("ends in the middle of a box's header, at byte \(next)")
        }
        let type = head.word(4)
        guard isNumbered || type.isPlain else { return .broken("has no box at byte \(next)") }
        var content = next + 8
        var size = head.bigEndian(0, 4)
        if size == 1 {
            guard let long = try reader.all(at: content, 8), end - content >= 8 else {
                return .broken("ends in the middle of a box's header, at byte \(next)")
            }
            size = long.bigEndian(0, 8)
            content += 8
        }
        let isOpenEnded = head.bigEndian(0, 4) == 0
        if isOpenEnded { size = UInt64(end - next) }
        guard size >= UInt64(content - next) else { return .broken("has no box at byte \(next)") }
        guard size <= UInt64(end - next) else {
            return .broken(
                "ends \(shownBytes(Int64(clamping: size - UInt64(end - next)))) before its box '\(type)' does")
        }
        let box = Box(
            type: type, start: next, content: content, end: next + Int64(size), isOpenEnded: isOpenEnded)
        next = box.end
        return .box(box)
    }

    /// The next of these boxes; `nil` when there is none, or the bytes there are no box. Used to find metadata.
    mutating func find(_ types: Set<FourCC>) throws(HeaderReader.Stop) -> Box? {
        while case .box(let box) = try step() { if types.contains(box.type) { return box } }
        return nil
    }
}
