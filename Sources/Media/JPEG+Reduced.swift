// A JPEG picture reduced to what a decoder of its image needs.

extension JPEG {
    /// The same picture without metadata, colour profiles, comments, and bytes behind its end; `nil` for anything that
    /// is not one whole baseline picture of at most `side` pixels in each direction.
    ///
    /// A program that decodes files of strangers made it, and those may have taken the program over. So nothing is
    /// passed on but tables, one frame and one scan (ITU-T T.81, B.1.1.3), each of the length that it states.
    static func reduced(_ bytes: [UInt8], side: Int) -> [UInt8]? {
        guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
        var (kept, offset, hasFrame): ([UInt8], Int, Bool) = ([0xFF, 0xD8], 2, false)
        while offset + 4 <= bytes.count, bytes[offset] == 0xFF {
            let marker = bytes[offset + 1]
            let length = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
            let end = offset + 2 + length
            guard length >= 2, end <= bytes.count else { return nil }
            switch marker {
            // Tables: DHT, DQT, DRI.
            case 0xC4, 0xDB, 0xDD: kept += bytes[offset..<end]
            // The frame of a baseline picture.
            case 0xC0:
                guard !hasFrame, length >= 11, isFrame(bytes[(offset + 4)..<end], side: side) else { return nil }
                hasFrame = true
                kept += bytes[offset..<end]
            case 0xDA:
                guard hasFrame, let last = endOfScan(bytes, from: end) else { return nil }
                return kept + bytes[offset..<last] + [0xFF, 0xD9]
            // Applications' own (APPn) and comments.
            case 0xE0...0xEF, 0xFE: break
            default: return nil
            }
            offset = end
        }
        return nil
    }

    /// B.2.2: precision, height, width, and three bytes for each of 1 or 3 components.
    private static func isFrame(_ frame: ArraySlice<UInt8>, side: Int) -> Bool {
        let frame = Array(frame)
        let (height, width) = (Int(frame[1]) << 8 | Int(frame[2]), Int(frame[3]) << 8 | Int(frame[4]))
        let components = Int(frame[5])
        return frame[0] == 8 && (1...side).contains(height) && (1...side).contains(width)
            && (components == 1 || components == 3) && frame.count == 6 + 3 * components
    }

    /// Where the marker of the picture's end stands; `nil` when another marker comes first, or none.
    private static func endOfScan(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        while index + 1 < bytes.count {
            guard bytes[index] == 0xFF else {
                index += 1
                continue
            }
            switch bytes[index + 1] {
            // A 0xFF of the data, and the markers of restarts.
            case 0x00, 0xD0...0xD7: index += 2
            case 0xD9: return index
            default: return nil
            }
        }
        return nil
    }
}
