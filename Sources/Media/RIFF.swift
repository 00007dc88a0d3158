internal import Core

/// AVI: chunks in lists in a RIFF. A large file may have more RIFFs (Microsoft's AVI RIFF File Reference, and the
/// OpenDML AVI File Format Extensions 1.02).
enum RIFF {
    struct Chunk {
        let type: FourCC
        /// The second word of a list: `hdrl`, `movi` …
        let form: FourCC
        let content: Int64
        let end: Int64
        /// The offset of the next chunk, which is even.
        var next: Int64 { end + end % 2 }
        var isList: Bool { type == "LIST" || type == "RIFF" }
    }

    /// - Returns: `nil` when no header fits there.
    static func chunk(at offset: Int64, in reader: HeaderReader) throws(HeaderReader.Stop) -> Chunk? {
        let head = HeaderBytes(try reader.bytes(at: offset, 12))
        guard head.count >= 8 else { return nil }
        let isList = head.word(0) == "LIST" || head.word(0) == "RIFF"
        return Chunk(
            type: head.word(0), form: isList ? head.word(8) : FourCC(0), content: offset + (isList ? 12 : 8),
            end: offset + 8 + Int64(head.littleEndian(4, 4)))
    }

    /// The chunks from `start` that end before `end`, by their headers. A caller that gets `nil` checks whether
    /// `offset` is there.
    struct Chunks {
        let reader: HeaderReader
        var offset: Int64
        let end: Int64

        mutating func next() throws(HeaderReader.Stop) -> Chunk? {
            guard offset < end, let chunk = try RIFF.chunk(at: offset, in: reader), chunk.end <= end else { return nil }
            offset = chunk.next
            return chunk
        }

        /// Every chunk was read, and the last one ended where the list ends.
        var isAtEnd: Bool { offset >= end }
    }

    /// Complete when the RIFFs cover the file exactly, the chunks of each cover it, and the first has `hdrl`, `movi`,
    /// and an index where its header promises one.
    ///
    /// A recorder leaves the RIFF's size at 0 or at the largest number, and fills it in at the end, after the index.
    static func verdict(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Container.Verdict {
        func notWhole(_ reason: String) -> Container.Verdict { .incomplete(.avi, reason: reason) }
        var offset: Int64 = 0
        while offset < reader.size {
            guard let riff = try chunk(at: offset, in: reader), riff.type == "RIFF",
                riff.form == (offset == 0 ? "AVI " : "AVIX")
            else { return notWhole("has no RIFF at byte \(offset)") }
            let size = riff.end - offset - 8
            guard size > 4, size != Int64(UInt32.max) else {
                return notWhole("has no size in its RIFF yet, which a recorder fills in at the end")
            }
            guard riff.end <= reader.size else {
                return notWhole("ends \(shownBytes(riff.end - reader.size)) before its RIFF does")
            }
            if let reason = try flaw(of: riff, in: reader, isFirst: offset == 0) { return notWhole(reason) }
            offset = riff.next
        }
        return offset == 0 ? notWhole("is empty") : .complete(.avi)
    }

    private static func flaw(of riff: Chunk, in reader: HeaderReader, isFirst: Bool) throws(HeaderReader.Stop)
        -> String?
    {
        var chunks = Chunks(reader: reader, offset: riff.content, end: riff.end)
        var (hasData, hasIndex) = (false, false)
        var header: Header?
        while let chunk = try chunks.next() {
            switch (chunk.type, chunk.form) {
            case ("LIST", "movi"): hasData = true
            case ("LIST", "hdrl"): header = try Header(chunk, in: reader)
            case ("idx1", _): hasIndex = true
            default: break
            }
        }
        guard chunks.isAtEnd else { return "has a chunk at byte \(chunks.offset) that does not fit" }
        if !hasData { return "has no 'movi' in its RIFF" }
        guard isFirst else { return nil }
        guard let header else { return "has no 'hdrl'" }
        if header.promisesIndex && !hasIndex && !header.hasIndex { return "has no index yet" }
        return nil
    }

    /// The contents of the list `hdrl`.
    struct Header {
        /// AVIF_HASINDEX.
        var promisesIndex = false
        /// One of its streams contains an OpenDML index.
        var hasIndex = false
        var microsecondsPerFrame: UInt64 = 0
        var frames: UInt64 = 0
        var width = 0
        var height = 0

        init(_ list: Chunk, in reader: HeaderReader) throws(HeaderReader.Stop) {
            var chunks = Chunks(reader: reader, offset: list.content, end: list.end)
            while let chunk = try chunks.next() {
                if chunk.type == "avih", let fields = try reader.all(at: chunk.content, 40) {
                    microsecondsPerFrame = fields.littleEndian(0, 4)
                    promisesIndex = fields.littleEndian(12, 4) & 0x10 != 0
                    frames = fields.littleEndian(16, 4)
                    width = Int(fields.littleEndian(32, 4))
                    height = Int(fields.littleEndian(36, 4))
                } else if chunk.type == "LIST", chunk.form == "strl" {
                    var stream = Chunks(reader: reader, offset: chunk.content, end: chunk.end)
                    while let part = try stream.next() { if part.type == "indx" { hasIndex = true } }
                }
            }
        }
    }
}
