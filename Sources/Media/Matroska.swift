internal import Core

/// Matroska and WebM: an EBML header, then a Segment (RFC 8794, RFC 9559).
enum Matroska {
    /// The first four bytes of every file: the ID of the EBML header.
    static let header: UInt64 = 0x1A45_DFA3
    static let segment: UInt64 = 0x1853_8067
    /// Elements that may occur beside a Segment: another header, Void, CRC-32.
    private static let besides: Set<UInt64> = [header, 0xEC, 0xBF]

    /// Complete when every element at the top level has a size, one of them is a Segment, and they cover the file
    /// exactly.
    ///
    /// A recorder leaves the Segment's size unknown (all ones) and fills it in at the end. A live stream leaves it
    /// unknown for ever, and cannot be distinguished from an unfinished file.
    static func verdict(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Container.Verdict {
        var offset: Int64 = 0
        var hasSegment = false
        while offset < reader.size {
            guard let element = try Element(at: offset, in: reader),
                element.id == segment || besides.contains(element.id)
            else { return .incomplete(.matroska, reason: "has no element at byte \(offset)") }
            guard let end = element.end else {
                return .incomplete(
                    .matroska, reason: "has no size in its Segment yet, which a recorder fills in at the end")
            }
            if element.id == segment { hasSegment = true }
            guard end <= reader.size else {
                return .incomplete(.matroska, reason: "ends \(shownBytes(end - reader.size)) too early")
            }
            offset = end
        }
        return hasSegment ? .complete(.matroska) : .incomplete(.matroska, reason: "has no Segment yet")
    }
}

/// An EBML element by its header (RFC 8794, section 6).
struct Element {
    let id: UInt64
    let content: Int64
    /// The offset of the next element; `nil` when the size is unknown. May be after the end of the file.
    let end: Int64?

    /// - Returns: `nil` when the bytes there are not a header.
    init?(at offset: Int64, in reader: HeaderReader) throws(HeaderReader.Stop) {
        let head = HeaderBytes(try reader.bytes(at: offset, 12))
        let idLength = head.byte(0).leadingZeroBitCount + 1
        let lengthLength = head.byte(idLength).leadingZeroBitCount + 1
        guard idLength <= 4, lengthLength <= 8, head.count >= idLength + lengthLength else { return nil }
        id = head.bigEndian(0, idLength)
        content = offset + Int64(idLength + lengthLength)
        // The first one bit of the length field marks its width; all ones after it mean that the size is unknown.
        let ones = UInt64.max >> UInt64(64 - 7 * lengthLength)
        let length = head.bigEndian(idLength, lengthLength) & ones
        if length == ones {
            end = nil
        } else {
            let (sum, isOver) = content.addingReportingOverflow(Int64(length))
            end = isOver ? Int64.max : sum
        }
    }
}
