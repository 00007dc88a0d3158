/// The body of one HTTP request, as it passes: it finds the end (RFC 9112, sections 6 and 7.1).
///
/// Bytes after the end would be a second request, whose head was not checked.
struct RequestBody: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        /// The connection has no end of its own: a tunnel.
        case unlimited
        /// Bytes of a body, or of a chunk, that are still to come.
        case bytes(Int64)
        /// The line with the size of a chunk; contains the digits, whether they are over, and the length of the line.
        case size(Int64, digits: Int, isOver: Bool, length: Int)
        case chunk(Int64)
        /// CR and LF after a chunk; contains the number of those that came.
        case chunkEnd(Int)
        /// Lines after the last chunk: the length of the present line, and of all.
        case trailer(line: Int, total: Int)
        case over
        case broken
    }

    private var state: State
    private var last: UInt8 = 0

    /// Any number of bytes.
    static let unlimited = RequestBody(.unlimited)
    static let chunked = RequestBody(.size(0, digits: 0, isOver: false, length: 0))
    static func length(_ count: Int64) -> RequestBody { RequestBody(count > 0 ? .bytes(count) : .over) }

    private init(_ state: State) { self.state = state }

    var isOver: Bool { state == .over }
    var isBroken: Bool { state == .broken }

    /// The most bytes of a line of the chunked coding, and of all lines after the last chunk.
    private static let longestLine = 1 << 10
    private static let longestTrailer = 8 << 10

    /// Passes bytes.
    ///
    /// - Returns: How many of them belong to the body; `nil` where the coding is broken.
    mutating func take(_ bytes: ArraySlice<UInt8>) -> Int? {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            switch state {
            case .unlimited: return bytes.count
            case .over: return index - bytes.startIndex
            case .broken: return nil
            case .bytes(let left), .chunk(let left):
                let count = Int(min(left, Int64(bytes.endIndex - index)))
                index += count
                let rest = left - Int64(count)
                if case .bytes = state {
                    state = rest > 0 ? .bytes(rest) : .over
                } else {
                    state = rest > 0 ? .chunk(rest) : .chunkEnd(0)
                }
            case .size, .chunkEnd, .trailer:
                takeFraming(bytes[index])
                last = bytes[index]
                index += 1
            }
        }
        return state == .broken ? nil : bytes.count
    }

    private mutating func takeFraming(_ byte: UInt8) {
        switch state {
        case .size(let size, let digits, let isOver, let length):
            takeSize(byte, size, digits: digits, isOver: isOver, length: length)
        case .chunkEnd(let count):
            guard byte == (count == 0 ? 0x0D : 0x0A) else {
                state = .broken
                return
            }
            state = count == 0 ? .chunkEnd(1) : .size(0, digits: 0, isOver: false, length: 0)
        case .trailer(let line, let total):
            guard total < Self.longestTrailer, byte == 0x0A ? last == 0x0D : last != 0x0D else {
                state = .broken
                return
            }
            if byte == 0x0A {
                state = line == 0 ? .over : .trailer(line: 0, total: total + 1)
            } else {
                state = .trailer(line: byte == 0x0D ? line : line + 1, total: total + 1)
            }
        case .unlimited, .bytes, .chunk, .over, .broken: break
        }
    }

    private mutating func takeSize(_ byte: UInt8, _ size: Int64, digits: Int, isOver: Bool, length: Int) {
        if byte == 0x0A {
            guard last == 0x0D, digits > 0 else {
                state = .broken
                return
            }
            state = size > 0 ? .chunk(size) : .trailer(line: 0, total: 0)
            // The end of this line is not that of the first line after the last chunk.
            return
        }
        guard last != 0x0D, length < Self.longestLine else {
            state = .broken
            return
        }
        if !isOver, let digit = Self.hexadecimal(byte), digits < 15 {
            state = .size(size << 4 | Int64(digit), digits: digits + 1, isOver: false, length: length + 1)
        } else if digits > 0, isOver || byte == 0x0D || byte == UInt8(ascii: ";") {
            // Extensions, up to the end of the line.
            state = .size(size, digits: digits, isOver: true, length: length + 1)
        } else {
            state = .broken
        }
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
