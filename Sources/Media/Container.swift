package import Core
package import Linux

/// The container formats whose completeness can be judged from their headers.
package enum Container: String, Hashable, Sendable, CaseIterable {
    case mp4
    case matroska
    case transportStream = "mpeg-ts"
    case avi
    case jpeg

    /// The judgement from a file's headers.
    package enum Verdict: Hashable, Sendable {
        /// Complete, as far as this format can show: `docs/media.md` says how far that is, for each.
        case complete(Container)
        /// Incomplete, because it is still written or was interrupted; the missing part, as a text that follows the
        /// file's name.
        case incomplete(Container, reason: String)
        /// Nothing is known about its completeness.
        case unknownFormat
        /// A container with more parts than the limit.
        case tooLong(Container)
    }

    /// Judges the headers with a bounded number of short reads, for any content.
    ///
    /// - Parameter name: The file's name. It only decides whether a file that begins with zeros should have been a
    ///   container.
    /// - Throws: Errors of the reader.
    package static func verdict(of reader: HeaderReader, named name: FilePath) throws(SystemError) -> Verdict {
        var container: Container?
        do throws(HeaderReader.Stop) {
            container = try recognised(reader, name)
            switch container {
            case .mp4: return try BoxFile.verdict(reader)
            case .matroska: return try Matroska.verdict(reader)
            case .transportStream: return try TransportStream.verdict(reader)
            case .avi: return try RIFF.verdict(reader)
            case .jpeg: return try JPEG.verdict(reader)
            case nil: return .unknownFormat
            }
        } catch {
            switch error {
            case .unreadable(let error): throw error
            case .enough: return container.map { .tooLong($0) } ?? .unknownFormat
            }
        }
    }

    /// Whether a file is complete, and its container has an explicit end that was written, so that nothing will be
    /// added. A transport stream has no such end, and neither has a recording in fragments, or an `mdat` that extends
    /// to the end of the file: each looks complete in the middle of its writing too.
    ///
    /// - Throws: Errors of the reader.
    package static func isClosed(_ reader: HeaderReader, named name: FilePath) throws(SystemError) -> Bool {
        guard case .complete(let container) = try verdict(of: reader, named: name) else { return false }
        switch container {
        case .matroska, .avi, .jpeg: return true
        case .transportStream: return false
        case .mp4:
            do throws(HeaderReader.Stop) { return try !BoxFile.mayGrow(reader) } catch {
                if case .unreadable(let error) = error { throw error }
                return false
            }
        }
    }

    /// Recognised by the beginning of the file. Its name counts only where the beginning was never written.
    static func recognised(_ reader: HeaderReader, _ name: FilePath) throws(HeaderReader.Stop) -> Container? {
        let head = HeaderBytes(try reader.bytes(at: 0, 16))
        if BoxFile.begins(head, size: reader.size) { return .mp4 }
        if head.bigEndian(0, 4) == Matroska.header { return .matroska }
        if head.word(0) == "RIFF", head.word(8) == "AVI " { return .avi }
        if head.bigEndian(0, 3) == 0xFFD8FF { return .jpeg }
        if try TransportStream.packet(of: reader) != nil { return .transportStream }
        if head.count > 0, head.slice(0, 16).allSatisfy({ $0 == 0 }) { return byEnding(name) }
        return nil
    }

    private static func byEnding(_ name: FilePath) -> Container? {
        switch name.fileExtension?.text?.lowercased() {
        case "mp4", "m4v", "mov", "lrv", "insv", "3gp": .mp4
        case "mkv", "webm": .matroska
        case "ts", "mts", "m2ts": .transportStream
        case "avi": .avi
        case "jpg", "jpeg": .jpeg
        default: nil
        }
    }
}
