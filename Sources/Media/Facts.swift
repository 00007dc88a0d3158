package import Core
package import Linux

/// Reads what recordings say of themselves out of their headers. `docs/media.md` says where each fact comes from.
package enum Facts {
    /// - Returns: What was found; empty where nothing was, or where no reader of ours knows the format.
    /// - Throws: What the reader threw.
    package static func of(_ pieces: Pieces, named name: FilePath) throws(SystemError) -> MediaFacts {
        var facts = MediaFacts()
        do throws(Pieces.Stop) {
            switch try Container.recognised(pieces, name) {
            case .mp4: try BoxFile.read(&facts, pieces)
            case .matroska: try Matroska.read(&facts, pieces)
            case .avi: try RIFF.read(&facts, pieces)
            case .jpeg: try JPEG.read(&facts, pieces)
            case .transportStream, nil: break
            }
        } catch {
            // What was found before the limit holds.
            if case .unreadable(let error) = error { throw error }
        }
        return facts
    }

    /// Milliseconds of so many units, of which a second has `scale`; `nil` for none and for what no recording lasts.
    static func milliseconds(_ units: UInt64, scale: UInt64) -> Int64? {
        guard scale > 0, units > 0 else { return nil }
        let (whole, rest) = units.quotientAndRemainder(dividingBy: scale)
        // A year; what is longer was never set or is damaged.
        guard whole <= 366 * 86_400 else { return nil }
        return Int64(whole) * 1000 + Int64(Double(rest) / Double(scale) * 1000)
    }

    /// A width or a height; `nil` for one that no picture has.
    static func pixels(_ number: UInt64) -> Int? { (1...1_000_000).contains(number) ? Int(number) : nil }

    /// A name as a camera wrote it: up to its NUL, without space around it, short, printable.
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

    /// The moment that a text like `2024-05-01T12:20:30+0200` names; local time where it names no offset.
    static func moment(_ text: some Collection<UInt8>, offset: [UInt8] = []) -> WallTime? {
        guard let time = CivilTime(text) else { return nil }
        var rest = Array(text.dropFirst(19).prefix { $0 != 0 })
        // Parts of a second.
        if rest.first == UInt8(ascii: ".") {
            rest = Array(rest.dropFirst().drop(while: \.isDigit))
        }
        guard let offset = CivilTime.offset(rest) ?? CivilTime.offset(offset) else { return time.localMoment }
        return time.moment(offset: offset)
    }
}
