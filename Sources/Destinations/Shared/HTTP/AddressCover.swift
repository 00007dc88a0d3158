internal import Core
internal import Synchronization

/// Covers the addresses of uploads in texts that a server wrote. It may have written them in its own way: in upper
/// case, percent-coded in another way or twice, or with a zero byte or a line end inside.
final class AddressCover: Sendable {
    /// Each in the form that ``Reading`` has; the oldest are dropped.
    private let known = Mutex<[[UInt8]]>([])

    private static let maxKnown = 256
    /// Shorter parts are not covered: they may be words of any message. (bytes)
    private static let minLength = 8

    /// - Parameter parts: An address, and parts of it that are secrets as well.
    func remember(_ parts: [String]) {
        let forms = Set(parts.map { Reading(Array($0.utf8)).bytes }.filter { $0.count >= Self.minLength })
        known.withLock { known in
            // Those that are still in use are among the newest.
            known.removeAll { forms.contains($0) }
            known.append(contentsOf: forms)
            known.removeFirst(max(0, known.count - Self.maxKnown))
        }
    }

    /// Returns `text` with every occurrence of a remembered address or part replaced by `***`.
    func cover(_ text: [UInt8]) -> [UInt8] {
        let forms = known.withLock { $0 }
        if forms.isEmpty { return text }
        let reading = Reading(text)
        let found = forms.flatMap { form in
            reading.bytes.ranges(of: form).map { reading.starts[$0.lowerBound]..<reading.starts[$0.upperBound] }
        }
        return SecretEncoding.masked(text, found)
    }

    /// A text as it reads when its encodings, control characters and the case of its letters make no difference.
    private struct Reading {
        private(set) var bytes: [UInt8]
        /// Where in the text each of the bytes begins, and the end of the text.
        private(set) var starts: [Int]

        private static let encodings: [SecretEncoding] = [.json, .html, .percent]
        /// One encoding may be inside another.
        private static let maxDepth = 3

        init(_ text: [UInt8]) {
            bytes = text
            starts = Array(0...text.count)
            for _ in 0..<Self.maxDepth {
                let count = bytes.count
                for encoding in Self.encodings { decode(encoding) }
                if bytes.count == count { break }
            }
            dropControls()
            bytes = bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        }

        private mutating func decode(_ encoding: SecretEncoding) {
            var decoded: [UInt8] = []
            var places: [Int] = []
            var index = 0
            while index < bytes.count {
                let unit = encoding.unit(bytes[index...])
                for byte in unit?.bytes ?? [bytes[index]] {
                    decoded.append(byte)
                    places.append(starts[index])
                }
                index += unit?.length ?? 1
            }
            places.append(starts[bytes.count])
            (bytes, starts) = (decoded, places)
        }

        private mutating func dropControls() {
            let kept = bytes.indices.filter { bytes[$0] > 0x1F && bytes[$0] != 0x7F }
            starts = kept.map { starts[$0] } + [starts[bytes.count]]
            bytes = kept.map { bytes[$0] }
        }
    }
}
