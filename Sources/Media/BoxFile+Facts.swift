internal import Core

// Metadata of MP4 and QuickTime files: ISO/IEC 14496-12, 8.2 to 8.4, and the QuickTime File Format's chapters on user
// data and metadata.

extension BoxFile {
    /// Longer texts are not the name of a camera.
    private static let longest = 256

    static func read(_ facts: inout MediaFacts, _ reader: HeaderReader) throws(HeaderReader.Stop) {
        var boxes = Boxes(reader, from: 0, to: reader.size)
        guard let movie = try boxes.find(["moov"]) else { return }
        var parts = movie.inside(of: reader)
        var found = FoundValues()
        while let part = try parts.find(["mvhd", "trak", "mvex", "udta", "meta"]) {
            switch part.type {
            case "mvhd": try readHeader(part, &facts, &found, reader)
            case "trak": if facts.width == nil { try readTrack(part, &facts, reader) }
            case "mvex":
                var inside = part.inside(of: reader)
                if let total = try inside.find(["mehd"]) { try readTotal(total, &found, reader) }
            case "udta": try readUserData(part, &found, reader)
            default: try readMetadata(part, &found, reader)
            }
        }
        // The metadata's time has a zone; the header's is often local time that claims to be UTC.
        if let recorded = found.recorded { facts.recorded = recorded }
        facts.duration = facts.duration ?? MediaFactsReader.milliseconds(found.fragments, scale: found.scale)
        facts.make = found.make
        facts.model = found.model
    }

    /// Values that occur in more than one place, the better place first.
    private struct FoundValues {
        var scale: UInt64 = 0
        /// The length of all fragments, in units of ``scale``.
        var fragments: UInt64 = 0
        var recorded: WallTime?
        var make: String?
        var model: String?
    }

    /// `mvhd`: seconds since 1904 in UTC, units a second, and the number of units. Version 1 has 64-bit times.
    private static func readHeader(
        _ box: Box, _ facts: inout MediaFacts, _ found: inout FoundValues, _ reader: HeaderReader
    ) throws(HeaderReader.Stop) {
        guard box.end - box.content >= 32, let fields = try reader.all(at: box.content, 32) else { return }
        let isLong = fields.byte(0) == 1
        let created = isLong ? fields.bigEndian(4, 8) : fields.bigEndian(4, 4)
        found.scale = isLong ? fields.bigEndian(20, 4) : fields.bigEndian(12, 4)
        let length = isLong ? fields.bigEndian(24, 8) : fields.bigEndian(16, 4)
        // From 1904 to 1970. A camera without a clock writes 0 there, or the beginning of its own count.
        let epoch: UInt64 = 2_082_844_800
        if created > epoch, created - epoch < 1 << 34 {
            facts.recorded = WallTime(milliseconds: Int64(created - epoch) * 1000)
        }
        // All ones mean unknown.
        if length != (isLong ? UInt64.max : UInt64(UInt32.max)) {
            facts.duration = MediaFactsReader.milliseconds(length, scale: found.scale)
        }
    }

    private static func readTotal(_ box: Box, _ found: inout FoundValues, _ reader: HeaderReader) throws(HeaderReader
        .Stop)
    {
        let fields = HeaderBytes(try reader.bytes(at: box.content, Int(min(12, box.end - box.content))))
        found.fragments = fields.byte(0) == 1 ? fields.bigEndian(4, 8) : fields.bigEndian(4, 4)
    }

    /// The size of a track's picture from `tkhd`, when its handler says video.
    private static func readTrack(_ track: Box, _ facts: inout MediaFacts, _ reader: HeaderReader) throws(HeaderReader
        .Stop)
    {
        var parts = track.inside(of: reader)
        var size: (width: Int, height: Int)?
        var isVideo = false
        while let part = try parts.find(["tkhd", "mdia"]) {
            if part.type == "mdia" {
                var inside = part.inside(of: reader)
                guard let handler = try inside.find(["hdlr"]), handler.end - handler.content >= 12 else { continue }
                isVideo = try reader.all(at: handler.content, 12)?.word(8) == "vide"
            } else {
                size = try pictureSize(part, reader)
            }
        }
        guard isVideo, let size else { return }
        facts.width = size.width
        facts.height = size.height
    }

    private static func pictureSize(_ box: Box, _ reader: HeaderReader) throws(HeaderReader.Stop) -> (
        width: Int, height: Int
    )? {
        let isLong = try reader.bytes(at: box.content, 1).first == 1
        // The matrix is 36 bytes before the size, which is at the end of the box.
        let matrix = box.content + (isLong ? 52 : 40)
        guard matrix + 44 <= box.end, let fields = try reader.all(at: matrix, 44) else { return nil }
        guard let width = MediaFactsReader.pixels(fields.bigEndian(36, 4) >> 16),
            let height = MediaFactsReader.pixels(fields.bigEndian(40, 4) >> 16)
        else { return nil }
        // The matrix is a b u, c d v, x y w. A picture rotated by 90 degrees has no a and no d.
        let isTurned = fields.bigEndian(0, 4) == 0 && fields.bigEndian(16, 4) == 0 && fields.bigEndian(4, 4) != 0
        return isTurned ? (height, width) : (width, height)
    }

    /// `udta`: QuickTime's `©mak` and `©mod`, each text with its length and language, or a `meta` like the one beside it.
    private static func readUserData(_ box: Box, _ found: inout FoundValues, _ reader: HeaderReader) throws(HeaderReader
        .Stop)
    {
        var parts = box.inside(of: reader)
        while let part = try parts.find(["©mak", "©mod", "meta"]) {
            if part.type == "meta" {
                try readMetadata(part, &found, reader)
                continue
            }
            let count = Int(min(Int64(longest), part.end - part.content))
            let fields = HeaderBytes(try reader.bytes(at: part.content, count))
            let text = MediaFactsReader.text(fields.slice(4, Int(fields.bigEndian(0, 2))))
            if part.type == "©mak" { found.make = found.make ?? text } else { found.model = found.model ?? text }
        }
    }

    /// `meta` with the handler `mdta`: `keys` has the names, `ilst` the values, each under the number of its name.
    private static func readMetadata(_ box: Box, _ found: inout FoundValues, _ reader: HeaderReader) throws(HeaderReader
        .Stop)
    {
        // ISO's `meta` has a version before its boxes, QuickTime's has none; the first box is `hdlr` in both.
        let isPlain = try reader.all(at: box.content, 8)?.word(4) == "hdlr"
        var parts = box.inside(of: reader, skipping: isPlain ? 0 : 4)
        var names: [UInt32: String] = [:]
        while let part = try parts.find(["keys", "ilst"]) {
            if part.type == "keys" {
                names = try metadataNames(part, reader)
            } else {
                var items = part.inside(of: reader)
                // The item's name is a number, which is not a word.
                while let (number, value) = try metadataItem(&items, reader, in: part) {
                    guard let name = names[number] else { continue }
                    recordValue(name, value, &found)
                }
            }
        }
    }

    private static func recordValue(_ name: String, _ value: ArraySlice<UInt8>, _ found: inout FoundValues) {
        switch name {
        case "com.apple.quicktime.creationdate": found.recorded = MediaFactsReader.moment(value) ?? found.recorded
        case "com.apple.quicktime.make": found.make = MediaFactsReader.text(value) ?? found.make
        case "com.apple.quicktime.model": found.model = MediaFactsReader.text(value) ?? found.model
        default: break
        }
    }

    /// `keys`: a count, then size, namespace and name of each key.
    private static func metadataNames(_ box: Box, _ reader: HeaderReader) throws(HeaderReader.Stop) -> [UInt32: String]
    {
        var names: [UInt32: String] = [:]
        var offset = box.content + 8
        var number: UInt32 = 1
        while offset + 8 <= box.end, number <= 1000, let head = try reader.all(at: offset, 8) {
            let size = Int64(head.bigEndian(0, 4))
            guard size >= 8, size <= box.end - offset else { break }
            if head.word(4) == "mdta" {
                let name = try reader.bytes(at: offset + 8, Int(min(Int64(longest), size - 8)))
                names[number] = String(decoding: name, as: UTF8.self)
            }
            offset += size
            number += 1
        }
        return names
    }

    /// The next item of an `ilst` and its text: a box named by a number, with a `data` box in it.
    private static func metadataItem(
        _ items: inout Boxes, _ reader: HeaderReader, in list: Box
    ) throws(HeaderReader.Stop) -> (UInt32, ArraySlice<UInt8>)? {
        guard let item = try items.numbered() else { return nil }
        var inside = item.inside(of: reader)
        guard let data = try inside.find(["data"]), data.end - data.content > 8 else { return (item.type.value, []) }
        // Type and country come before the text.
        let count = Int(min(Int64(longest), data.end - data.content - 8))
        return (item.type.value, try reader.bytes(at: data.content + 8, count))
    }
}
