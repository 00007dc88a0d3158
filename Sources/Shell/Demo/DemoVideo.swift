/// A QuickTime movie that this program makes itself: coloured stripes that move for four seconds, without compression
/// and sound. Players show it, and it is as large as a camera's clip.
enum DemoVideo {
    static let width = 320
    static let height = 240
    static let frames = 100
    static let framesPerSecond = 25

    private static let frameSize = width * height * 3

    /// The whole file: 25 frames a second; a part of the frames makes a shorter one.
    static func content(frames: Int = frames) -> [UInt8] {
        let type = box("ftyp", Array("qt  ".utf8) + word(0) + Array("qt  ".utf8))
        // The table of samples contains their place in the file, so the size of what comes before them is needed first.
        let headSize = type.count + movie(frames, samplesAt: 0).count + 8
        var file = type + movie(frames, samplesAt: headSize)
        file.reserveCapacity(headSize + frames * frameSize)
        file += word(8 + frames * frameSize) + Array("mdat".utf8)
        // One line of pixels that is longer than the picture. Each line of a frame is a part of it, so the stripes move.
        let stripes = (0..<256 + width).flatMap { place -> [UInt8] in
            let light = UInt8(truncatingIfNeeded: place)
            return [light, light &* 2, 255 - light]
        }
        for frame in 0..<frames {
            for line in 0..<height {
                let start = (line + 4 * frame) % 256 * 3
                file += stripes[start..<start + width * 3]
            }
        }
        return file
    }

    /// The box `moov`: one track with one chunk of samples (QuickTime File Format Specification).
    private static func movie(_ frames: Int, samplesAt offset: Int) -> [UInt8] {
        let matrix = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000].flatMap(word)
        let times = word(0) + word(0)
        let length = word(frames)
        let movieHead =
            word(0) + times + word(framesPerSecond) + length + word(0x10000) + half(0x100) + zeros(10) + matrix
            + zeros(24) + word(2)
        let trackHead =
            word(0xF) + times + word(1) + zeros(4) + length + zeros(16) + matrix + word(width << 16)
            + word(height << 16)
        let mediaHead = word(0) + times + word(framesPerSecond) + length + half(0) + half(0)
        let handler = word(0) + Array("mhlrvide".utf8) + zeros(13)
        let pictureHead = word(1) + zeros(8)
        let reference = box("dref", word(0) + word(1) + box("url ", word(1)))
        let format =
            zeros(6) + half(1) + zeros(16) + half(width) + half(height) + word(0x48_0000) + word(0x48_0000)
            + zeros(4) + half(1) + zeros(32) + half(24) + half(0xFFFF)
        let samples =
            box("stsd", word(0) + word(1) + box("raw ", format)) + box("stts", word(0) + word(1) + length + word(1))
            + box("stsc", word(0) + word(1) + word(1) + length + word(1))
            + box("stsz", word(0) + word(frameSize) + length) + box("stco", word(0) + word(1) + word(offset))
        let information = box("vmhd", pictureHead) + box("dinf", reference) + box("stbl", samples)
        let media = box("mdhd", mediaHead) + box("hdlr", handler) + box("minf", information)
        return box("moov", box("mvhd", movieHead) + box("trak", box("tkhd", trackHead) + box("mdia", media)))
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        word(8 + content.count) + Array(name.utf8) + content
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    /// Two bytes, the most significant first.
    private static func half(_ value: Int) -> [UInt8] { [8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
    /// Four bytes, the most significant first.
    private static func word(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
}
