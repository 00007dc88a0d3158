internal import Core

extension RIFF {
    /// Reads length and size from the main header, `avih`. The format has no agreed place for a time or a camera.
    static func read(_ facts: inout MediaFacts, _ reader: HeaderReader) throws(HeaderReader.Stop) {
        guard let riff = try chunk(at: 0, in: reader) else { return }
        var chunks = Chunks(reader: reader, offset: riff.content, end: reader.size)
        while let chunk = try chunks.next() {
            guard chunk.type == "LIST", chunk.form == "hdrl" else { continue }
            let header = try Header(chunk, in: reader)
            facts.duration = MediaFactsReader.milliseconds(
                header.frames * header.microsecondsPerFrame, scale: 1_000_000)
            facts.width = MediaFactsReader.pixels(UInt64(header.width))
            facts.height = MediaFactsReader.pixels(UInt64(header.height))
            return
        }
    }
}
