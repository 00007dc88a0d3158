/// MP4, QuickTime and related formats (ISO/IEC 14496-12; QuickTime File Format): the whole file consists of boxes.
enum BoxFile {
    /// Boxes that may come first besides `ftyp`, in older QuickTime files and in segments of a stream. Others could be
    /// any text.
    private static let openings: Set<FourCC> = ["moov", "mdat", "wide", "free", "skip", "pnot"]

    static func begins(_ head: HeaderBytes, size: Int64) -> Bool {
        let type = head.word(4)
        if type == "ftyp" || type == "styp" { return true }
        let length = head.bigEndian(0, 4)
        return openings.contains(type) && (length <= 1 || (length >= 8 && length <= UInt64(max(0, size))))
    }

    /// Complete when the boxes cover the file exactly, and both the index box and the data that it describes are there.
    ///
    /// A recorder writes `moov` last, or goes back and puts it first when it is done; a recorder of fragments ends each
    /// with its `mdat`. Stills (HEIF) have `meta` instead of `moov`; segments of a stream, which begin with `styp`,
    /// have neither.
    static func verdict(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Container.Verdict {
        var boxes = Boxes(reader, from: 0, to: reader.size)
        var first: FourCC?
        var hasMovie = false
        var isExplained = false
        var hasData = false
        var isFragmented = false
        var awaitsData = false
        walk: while true {
            switch try boxes.step() {
            case .end: break walk
            case .broken(let reason): return .incomplete(.mp4, reason: reason)
            case .box(let box):
                first = first ?? box.type
                switch box.type {
                case "moov":
                    hasMovie = true
                    isExplained = true
                    var inside = box.inside(of: reader)
                    isFragmented = try inside.find(["mvex"]) != nil
                case "meta": isExplained = true
                case "moof":
                    hasData = true
                    awaitsData = true
                    if first == "styp" { isExplained = true }
                case "mdat":
                    hasData = true
                    awaitsData = false
                default: break
                }
            }
        }
        if awaitsData { return .incomplete(.mp4, reason: "has no data for its last fragment") }
        if !isExplained { return .incomplete(.mp4, reason: "has no 'moov' yet, which a recorder writes at the end") }
        if hasMovie && !hasData {
            return .incomplete(.mp4, reason: isFragmented ? "has no fragment yet" : "has no 'mdat' yet")
        }
        return .complete(.mp4)
    }

    /// Whether it has no end of its own: either its last box extends to the end of the file, or it is or may be written
    /// in fragments, so that another one may follow at any time.
    static func mayGrow(_ reader: HeaderReader) throws(HeaderReader.Stop) -> Bool {
        var boxes = Boxes(reader, from: 0, to: reader.size)
        while case .box(let box) = try boxes.step() {
            if box.isOpenEnded || ["moof", "styp"].contains(box.type) { return true }
            var inside = box.inside(of: reader)
            if box.type == "moov", try inside.find(["mvex"]) != nil { return true }
        }
        return false
    }
}
