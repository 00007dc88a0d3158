internal import Core
internal import Linux

/// Checks the bytes of a file before they leave, and may stop them.
package protocol BodyCheck: Sendable {
    /// Called with the next bytes, in order, from `offset` of the file on. A repeated request begins again at the
    /// offset of its first byte. Runs on the transport's thread: must be cheap.
    ///
    /// - Throws: The reason why they must not leave; the request ends with ``TransportError/Kind/sourceFile``.
    func admit(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SourceProblem)
}

/// The reason why bytes of a body cannot be sent.
package struct SourceProblem: Error {
    let description: String
    package init(description: String) { self.description = description }
}

/// The source of a request's bytes. Never gives more than was promised, and never pads.
final class BodySource {
    private enum Kind {
        case bytes([UInt8])
        case file(OpenFile, (any BodyCheck)?)
        case framed(head: [UInt8], OpenFile, count: Int64, tail: [UInt8])
        case stream(ByteStream)
    }

    private let kind: Kind
    /// The most bytes that were ever read from it, not counting repeated reads.
    private(set) var bytesRead: Int64 = 0
    /// For a stream the maximum, until it has ended.
    private var count: Int64
    private var position: Int64 = 0

    /// Bytes that are not read yet.
    var left: Int64 { count - position }

    init(_ bytes: [UInt8]) {
        kind = .bytes(bytes)
        count = Int64(bytes.count)
    }

    init(_ place: FilePlace, offset: Int64, count: Int64, check: (any BodyCheck)?) throws(SystemError) {
        kind = .file(OpenFile(descriptor: try Descriptor.open(place), path: place.shown, offset: offset), check)
        self.count = count
    }

    init(head: [UInt8], _ place: FilePlace, offset: Int64, count: Int64, tail: [UInt8]) throws(SystemError) {
        let file = OpenFile(descriptor: try Descriptor.open(place), path: place.shown, offset: offset)
        kind = .framed(head: head, file, count: count, tail: tail)
        self.count = Int64(head.count) + count + Int64(tail.count)
    }

    init(_ stream: ByteStream) {
        kind = .stream(stream)
        count = .max
    }

    /// The stream that supplies its bytes, if they may have to be awaited.
    var stream: ByteStream? {
        if case .stream(let stream) = kind, left > 0 { stream } else { nil }
    }

    /// - Returns: 0 at the promised end.
    /// - Throws: When the file cannot be read, or ends before that.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SourceProblem) -> Int {
        defer { bytesRead = max(bytesRead, position) }
        let wanted = Int(min(Int64(buffer.count), left))
        guard wanted > 0 else { return 0 }
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        switch kind {
        case .bytes(let bytes): copy(bytes, from: position, into: piece)
        case .file(let file, let check):
            try file.read(into: piece, at: position, of: count)
            try check?.admit(UnsafeRawBufferPointer(piece), at: file.offset + position)
        case .framed(let head, let file, let middle, let tail):
            // A piece ends where its source does; libcurl calls again.
            let (start, end) = (Int64(head.count), Int64(head.count) + middle)
            let limit = position < start ? start : position < end ? end : count
            let got = UnsafeMutableRawBufferPointer(rebasing: piece[..<Int(min(Int64(wanted), limit - position))])
            if position < start {
                copy(head, from: position, into: got)
            } else if position < end {
                try file.read(into: got, at: position - start, of: middle)
            } else {
                copy(tail, from: position - end, into: got)
            }
            position += Int64(got.count)
            return got.count
        case .stream(let stream):
            do {
                let got = try stream.read(into: piece)
                position += Int64(got)
                if got == 0 { count = position }
                return got
            } catch { throw SourceProblem(description: "\(error)") }
        }
        position += Int64(wanted)
        return wanted
    }

    private func copy(_ bytes: [UInt8], from start: Int64, into piece: UnsafeMutableRawBufferPointer) {
        bytes.withUnsafeBytes {
            piece.copyMemory(from: .init(rebasing: $0[Int(start)..<Int(start) + piece.count]))
        }
    }

    func seek(to place: Int64) -> Bool {
        guard (0...count).contains(place) else { return false }
        // The bytes that were read are gone.
        switch kind {
        case .stream: return place == position
        case .file(_, .some): guard place == 0 || place == position else { return false }
        case .bytes, .file, .framed: break
        }
        position = place
        return true
    }
}

/// A class, because a descriptor has one owner and cannot be stored in an enum that is read in place.
private final class OpenFile {
    let descriptor: Descriptor
    let path: FilePath
    let offset: Int64

    init(descriptor: consuming Descriptor, path: FilePath, offset: Int64) {
        self.descriptor = descriptor
        self.path = path
        self.offset = offset
    }

    /// Fills the piece from `place` after its offset.
    ///
    /// - Parameter count: The promised size.
    func read(
        into piece: UnsafeMutableRawBufferPointer, at place: Int64, of count: Int64
    ) throws(SourceProblem) {
        let got: Int
        do { got = try descriptor.read(into: piece, at: offset + place, named: path) } catch {
            throw SourceProblem(description: "\(error)")
        }
        if got < piece.count {
            throw SourceProblem(
                description: "\(path.display) ends at byte \(offset + place + Int64(got)), "
                    + "and \(offset + count) were expected")
        }
    }
}
