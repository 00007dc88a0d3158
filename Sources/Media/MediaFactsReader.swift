package import Core
package import Linux

/// Reads metadata from the headers of recordings. `docs/media.md` gives the source of each value.
package enum MediaFactsReader {
    /// - Returns: The values that were found; empty where there are none, or where our readers do not know the format.
    /// - Throws: Errors of the reader.
    package static func of(_ reader: HeaderReader, named name: FilePath) throws(SystemError) -> MediaFacts {
        var facts = MediaFacts()
        do throws(HeaderReader.Stop) {
            switch try Container.recognised(reader, name) {
            case .mp4: try BoxFile.read(&facts, reader)
            case .matroska: try Matroska.read(&facts, reader)
            case .avi: try RIFF.read(&facts, reader)
            case .jpeg: try JPEG.read(&facts, reader)
            case .transportStream, nil: break
            }
        } catch {
            // Values that were found before the limit are valid.
            if case .unreadable(let error) = error { throw error }
        }
        return facts
    }

    /// The milliseconds of `units`, with `scale` units a second; `nil` for zero, and for an impossible duration.
    static func milliseconds(_ units: UInt64, scale: UInt64) -> Int64? {
        guard scale > 0, units > 0 else { return nil }
        let (whole, rest) = units.quotientAndRemainder(dividingBy: scale)
        // A year; a longer duration was never set or is damaged.
        guard whole <= 366 * 86_400 else { return nil }
        return Int64(whole) * 1000 + Int64(Double(rest) / Double(scale) * 1000)
    }

    /// A width or a height; `nil` for an impossible one.
    static func pixels(_ number: UInt64) -> Int? { (1...1_000_000).contains(number) ? Int(number) : nil }

    /// A name as a camera wrote it: up to its NUL, without surrounding space, short, printable.
    static func text(_ bytes: some Collection<UInt8>) -> String? {
        let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        let plain = text.unicodeScalars.filter {
            switch $0.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: false
            default: true
            }
        }
        var letters = String(String.UnicodeScalarView(plain))[...]
        while letters.first?.isWhitespace == true { letters.removeFirst() }
        letters = letters.prefix(64)
        while letters.last?.isWhitespace == true { letters.removeLast() }
        return letters.isEmpty ? nil : String(letters)
    }

    /// The moment of a text like `2024-05-01T12:20:30+0200`; local time where it has no offset.
    static func moment(_ text: some Collection<UInt8>, offset: [UInt8] = []) -> WallTime? {
        guard let time = CivilTime(text) else { return nil }
        var rest = Array(text.dropFirst(19).prefix { $0 != 0 })
        // Fractions of a second.
        if rest.first == UInt8(ascii: ".") {
            rest = Array(rest.dropFirst().drop(while: \.isDigit))
        }
        guard let offset = CivilTime.offset(rest) ?? CivilTime.offset(offset) else { return time.localMoment }
        return time.moment(offset: offset)
    }
}
