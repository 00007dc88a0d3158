/// JPEG: segments up to the picture's data, which ends with a marker of its own (ITU-T T.81, annex B).
enum JPEG {
    /// How many bytes at the end are searched first, and then of the picture's data.
    private static let tail: Int64 = 64 << 10
    private static let maxSearched: Int64 = 8 << 20
    private static let block = 64 << 10

    struct Segment {
        let marker: UInt8
        let content: Int64
        let end: Int64
    }

    /// The segments from the second byte of the file on, up to the one that begins the picture's data.
    struct Segments {
        let reader: HeaderReader
        var offset: Int64 = 2

        /// - Returns: `nil` where there is none.
        mutating func next() throws(HeaderReader.Stop) -> Segment? {
            while let head = try reader.all(at: offset, 2), head.byte(0) == 0xFF {
                let marker = head.byte(1)
                switch marker {
                // Any number of these may come before a marker.
                case 0xFF: offset += 1
                // Markers without a segment: TEM and RSTn.
                case 0x01, 0xD0...0xD7: offset += 2
                case 0x00, 0xD8, 0xD9: return nil
                default:
                    guard let length = try reader.all(at: offset + 2, 2)?.bigEndian(0, 2), length >= 2 else {
                        return nil
                    }
                    let segment = Segment(marker: marker, content: offset + 4, end: offset + 2 + Int64(length))
                    offset = segment.end
                    return segment
                }
            }
            return nil
        }
    }

    /// Complete when the segments lead to the picture's data, and the marker of its end (EOI) comes somewhere after its
    /// beginning.
    ///
    /// Within a picture's data an EOI cannot occur by chance, since 0xFF is followed by 0 there. Data that phones
    /// append (a short film, a depth map) is no fault.
    static func verdict(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Container.Verdict {
        var segments = Segments(reader: reader)
        while let segment = try segments.next() {
            guard segment.marker == 0xDA else { continue }
            guard segment.end <= reader.size else { break }
            let near = max(segment.end, reader.size - tail)
            if try hasEnd(reader, near..<reader.size) { return .complete(.jpeg) }
            let far = min(near, segment.end + maxSearched)
            // One more byte: the marker may be across the border.
            if try hasEnd(reader, segment.end..<min(far + 1, reader.size)) { return .complete(.jpeg) }
            return far < near ? .tooLong(.jpeg) : .incomplete(.jpeg, reason: "has no end of its picture yet")
        }
        return .incomplete(.jpeg, reason: "has no picture at byte \(segments.offset)")
    }

    private static func hasEnd(_ reader: HeaderReader, _ range: Range<Int64>) throws(HeaderReader.Stop) -> Bool {
        var offset = range.lowerBound
        var last: UInt8 = 0
        while offset < range.upperBound {
            let bytes = try reader.bytes(at: offset, Int(min(Int64(block), range.upperBound - offset)))
            if bytes.isEmpty { return false }
            for byte in bytes {
                if last == 0xFF && byte == 0xD9 { return true }
                last = byte
            }
            offset += Int64(bytes.count)
        }
        return false
    }
}
