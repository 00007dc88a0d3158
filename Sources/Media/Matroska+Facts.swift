internal import Core

// Metadata of Matroska and WebM files: RFC 9559, 5.1.2 (Info) and 5.1.4 (Tracks).

extension Matroska {
    private static let cluster: UInt64 = 0x1F43_B675
    private static let info: UInt64 = 0x1549_A966
    private static let tracks: UInt64 = 0x1654_AE6B

    static func read(_ facts: inout MediaFacts, _ reader: HeaderReader) throws(HeaderReader.Stop) {
        guard let top = try find(segment, from: 0, to: reader.size, in: reader) else { return }
        var parts = Elements(reader, from: top.content, to: min(top.end ?? reader.size, reader.size))
        // Elements after the first Cluster are not searched for: they may be at the far end.
        while let part = try parts.next(), part.id != cluster {
            let end = min(part.end ?? reader.size, reader.size)
            if part.id == info { try readInfo(&facts, part.content, end, reader) }
            if part.id == tracks { try readTracks(&facts, part.content, end, reader) }
        }
    }

    private static func readInfo(
        _ facts: inout MediaFacts, _ start: Int64, _ end: Int64, _ reader: HeaderReader
    ) throws(HeaderReader.Stop) {
        var parts = Elements(reader, from: start, to: end)
        // Nanoseconds a unit.
        var scale: UInt64 = 1_000_000
        var duration = 0.0
        while let part = try parts.next() {
            let value = try value(of: part, in: reader)
            switch part.id {
            case 0x2A_D7B1: scale = value.bigEndian(0, value.count)
            case 0x4489:
                duration =
                    value.count == 8
                    ? Double(bitPattern: value.bigEndian(0, 8))
                    : Double(Float(bitPattern: UInt32(truncatingIfNeeded: value.bigEndian(0, 4))))
            case 0x4461 where value.count == 8:
                // Nanoseconds since the beginning of 2001, in UTC.
                let since = Int64(bitPattern: value.bigEndian(0, 8)) / 1_000_000
                let epoch: Int64 = 978_307_200_000
                if since > -epoch { facts.recorded = WallTime(milliseconds: epoch + since) }
            default: break
            }
        }
        let nanoseconds = duration * Double(scale)
        if nanoseconds >= 1, nanoseconds < 1e18 {
            facts.duration = MediaFactsReader.milliseconds(UInt64(nanoseconds), scale: 1_000_000_000)
        }
    }

    private static func readTracks(
        _ facts: inout MediaFacts, _ start: Int64, _ end: Int64, _ reader: HeaderReader
    ) throws(HeaderReader.Stop) {
        var entries = Elements(reader, from: start, to: end)
        while facts.width == nil, let entry = try entries.next() {
            guard entry.id == 0xAE, let end = entry.end else { continue }
            guard let video = try find(0xE0, from: entry.content, to: min(end, reader.size), in: reader),
                let videoEnd = video.end
            else { continue }
            var size: (width: Int?, height: Int?)
            var parts = Elements(reader, from: video.content, to: min(videoEnd, reader.size))
            while let part = try parts.next() {
                let value = try value(of: part, in: reader)
                if part.id == 0xB0 { size.width = MediaFactsReader.pixels(value.bigEndian(0, value.count)) }
                if part.id == 0xBA { size.height = MediaFactsReader.pixels(value.bigEndian(0, value.count)) }
            }
            guard let width = size.width, let height = size.height else { continue }
            facts.width = width
            facts.height = height
        }
    }

    private static func find(
        _ id: UInt64, from start: Int64, to end: Int64, in reader: HeaderReader
    ) throws(HeaderReader.Stop) -> Element? {
        var elements = Elements(reader, from: start, to: end)
        while let element = try elements.next() { if element.id == id { return element } }
        return nil
    }

    /// A number or a date: up to 8 bytes, none where the element is longer.
    private static func value(of element: Element, in reader: HeaderReader) throws(HeaderReader.Stop) -> HeaderBytes {
        guard let end = element.end, end - element.content <= 8 else { return HeaderBytes([]) }
        return HeaderBytes(try reader.bytes(at: element.content, Int(end - element.content)))
    }

    /// The elements in a range, by their headers. Ends after one without a size, which extends to the end.
    private struct Elements {
        let reader: HeaderReader
        var offset: Int64
        let end: Int64

        init(_ reader: HeaderReader, from start: Int64, to end: Int64) {
            self.reader = reader
            offset = start
            self.end = end
        }

        mutating func next() throws(HeaderReader.Stop) -> Element? {
            guard offset < end, let element = try Element(at: offset, in: reader) else { return nil }
            offset = element.end ?? Int64.max
            return element
        }
    }
}
