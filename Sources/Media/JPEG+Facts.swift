internal import Core

// Metadata of JPEG pictures: the frame header (ITU-T T.81, B.2.2) and Exif 2.32, sections 4.6.2 to 4.6.5.

extension JPEG {
    static func read(_ facts: inout MediaFacts, _ reader: HeaderReader) throws(HeaderReader.Stop) {
        var segments = Segments(reader: reader)
        var isTurned = false
        while let segment = try segments.next(), segment.marker != 0xDA {
            switch segment.marker {
            // SOFn; the three excluded markers are other tables in the same range.
            case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(segment.marker):
                guard let fields = try reader.all(at: segment.content, 5) else { break }
                facts.height = MediaFactsReader.pixels(fields.bigEndian(1, 2))
                facts.width = MediaFactsReader.pixels(fields.bigEndian(3, 2))
            case 0xE1 where try reader.all(at: segment.content, 6)?.bigEndian(0, 6) == 0x4578_6966_0000:
                // "Exif", two zeros, then a TIFF with offsets of its own.
                isTurned = try Exif(reader, from: segment.content + 6, to: segment.end)?.read(&facts) ?? isTurned
            default: break
            }
        }
        if isTurned { (facts.width, facts.height) = (facts.height, facts.width) }
    }
}

/// A TIFF in a segment of a JPEG: directories of numbered values (TIFF 6.0, section 2).
private struct Exif {
    private let reader: HeaderReader
    private let start: Int64
    private let end: Int64
    private let isLittle: Bool

    /// - Returns: `nil` when it does not begin like one.
    init?(_ reader: HeaderReader, from start: Int64, to end: Int64) throws(HeaderReader.Stop) {
        self.reader = reader
        self.start = start
        self.end = end
        guard end - start >= 8, let head = try reader.all(at: start, 8) else { return nil }
        isLittle = head.bigEndian(0, 2) == 0x4949
        guard isLittle || head.bigEndian(0, 2) == 0x4D4D else { return nil }
    }

    /// - Returns: Whether the picture is shown rotated by 90 degrees.
    func read(_ facts: inout MediaFacts) throws(HeaderReader.Stop) -> Bool {
        var isTurned = false
        var details: UInt64?
        for entry in try entries(at: try number(4, 4)) {
            switch entry.tag {
            case 0x010F: facts.make = MediaFactsReader.text(try bytes(entry))
            case 0x0110: facts.model = MediaFactsReader.text(try bytes(entry))
            // For 5 to 8, rows and columns are exchanged.
            case 0x0112: isTurned = (5...8).contains(try number(entry.value, 2))
            case 0x8769: details = try number(entry.value, 4)
            default: break
            }
        }
        guard let details else { return isTurned }
        var time: ArraySlice<UInt8> = []
        var offset: ArraySlice<UInt8> = []
        for entry in try entries(at: details) {
            if entry.tag == 0x9003 { time = try bytes(entry) }
            if entry.tag == 0x9011 { offset = try bytes(entry) }
        }
        facts.recorded = MediaFactsReader.moment(time, offset: Array(offset.prefix { $0 != 0 && $0 != 0x20 }))
        return isTurned
    }

    private struct Entry {
        let tag: UInt64
        let count: UInt64
        /// The offset of the value field, which contains another offset when the value is longer than four bytes.
        let value: UInt64
    }

    /// A directory has a count and twelve bytes for each entry. Only two are read, so there can be no endless loop.
    private func entries(at offset: UInt64) throws(HeaderReader.Stop) -> [Entry] {
        var entries: [Entry] = []
        let count = try number(offset, 2)
        for index in 0..<min(count, 512) {
            let place = offset + 2 + index * 12
            guard place + 12 <= UInt64(end - start) else { break }
            entries.append(Entry(tag: try number(place, 2), count: try number(place + 4, 4), value: place + 8))
        }
        return entries
    }

    /// A text value; longer ones than any name are cut.
    private func bytes(_ entry: Entry) throws(HeaderReader.Stop) -> ArraySlice<UInt8> {
        let count = min(entry.count, 256)
        let offset = entry.count <= 4 ? entry.value : try number(entry.value, 4)
        guard offset <= UInt64(end - start), count <= UInt64(end - start) - offset else { return [] }
        return try reader.bytes(at: start + Int64(offset), Int(count))
    }

    /// A number at an offset of the TIFF, in its byte order; 0 outside it.
    private func number(_ offset: UInt64, _ count: Int) throws(HeaderReader.Stop) -> UInt64 {
        guard offset <= UInt64(end - start) - UInt64(count) else { return 0 }
        let fields = HeaderBytes(try reader.bytes(at: start + Int64(offset), count))
        return isLittle ? fields.littleEndian(0, count) : fields.bigEndian(0, count)
    }
}
