internal import Core

/// Finds the names of one report in its lines.
struct NameSearch {
    /// Where a name counts as that.
    private enum Standing {
        /// Also inside of a longer word: it cannot be meant otherwise.
        case anywhere
        case asWord
        /// It is a stem that may be a word of English: also as the value of any field, as in the context of an upload.
        case asValue
        /// It is short, or a word of the report: only as a part of a path, in quotes, or as the value of a field.
        case asPath
    }
    private struct Name {
        var mark: String
        var standing: Standing
    }
    private struct Place {
        var mark: String
        var isFolder: Bool
    }
    /// Bytes that a mark replaces.
    private struct Cover {
        var range: Range<Int>
        var mark: String
    }

    private let hidden: HiddenNames
    /// Whole paths below watched folders.
    private let paths: NamePatterns<Place>
    private let names: NamePatterns<Name>
    /// The watched folders, each with a slash at the end.
    private let roots: NamePatterns<Void>
    private let stays: NamePatterns<Void>

    init(_ hidden: HiddenNames) {
        self.hidden = hidden
        let starts = hidden.roots.map { HiddenNames.withoutSlash(HiddenNames.canonical($0)) }.filter { $0 != "/" }.map {
            $0 + "/"
        }
        roots = NamePatterns(Dictionary(starts.map { (Self.bytes($0), ()) }) { first, _ in first })
        let fixed = starts.map { String($0.dropLast()) } + hidden.kept
        stays = NamePatterns(Dictionary(fixed.map { (Self.bytes($0), ()) }) { first, _ in first })
        let catalog = NameCatalog(hidden, below: starts)
        var (paths, names): ([[UInt8]: Place], [[UInt8]: Name]) = ([:], [:])
        func add(_ text: String, _ mark: String, isStem: Bool = false) {
            for form in HiddenNames.forms(of: text) {
                let bytes = Self.bytes(form)
                guard names[bytes] == nil else { continue }
                let standing = Self.standing(of: form, among: hidden.words, isStem: isStem)
                names[bytes] = Name(mark: mark, standing: standing)
            }
            addCoded(text, mark)
        }
        func addCoded(_ text: String, _ mark: String) {
            for form in HiddenNames.codedForms(of: text) where names[Array(form.utf8)] == nil {
                names[Array(form.utf8)] = Name(mark: mark, standing: .anywhere)
            }
        }
        for (path, isFolder) in catalog.paths {
            let mark = catalog.mark(ofPath: path)
            paths[Self.bytes(path)] = Place(mark: mark, isFolder: isFolder)
            addCoded(path, mark)
        }
        self.paths = NamePatterns(paths)
        let whole = catalog.texts.map { (text: $0, mark: catalog.mark(ofText: $0)) }
        let parts = whole.flatMap { name in HiddenNames.parts(of: name.text).map { (text: $0, mark: name.mark) } }
        for (text, mark) in whole + parts { add(text, mark) }
        // Companions and copies have the name with another ending.
        for (text, mark) in whole + parts {
            guard let stem = Self.stem(of: text) else { continue }
            add(stem, mark.split(separator: ".").first.map(String.init) ?? mark, isStem: true)
        }
        self.names = NamePatterns(names)
    }

    private static func bytes(_ text: String) -> [UInt8] { DecodedText(text).bytes }

    private static func stem(of text: String) -> String? {
        guard let dot = text.lastIndex(of: "."), dot > text.startIndex, text[dot...].utf8.count <= 6 else { return nil }
        let stem = text[..<dot]
        return stem.hasSuffix("/") ? nil : String(stem)
    }

    private static func standing(of text: String, among words: Set<String>, isStem: Bool) -> Standing {
        let scalars = text.unicodeScalars
        let isPlain = scalars.allSatisfy { $0.properties.isAlphabetic || $0.properties.numericType != nil }
        // Two characters of a script without spaces are as much as a word.
        let isShort = text.count < (scalars.allSatisfy { $0.value >= 0x2E80 } ? 2 : 3)
        guard !isShort, scalars.contains(where: \.properties.isAlphabetic), !words.contains(text.lowercased()),
            !(isStem && HiddenNames.words(of: text).allSatisfy(words.contains))
        else { return .asPath }
        // The report has no words of its own in other scripts.
        if isStem, isPlain, scalars.allSatisfy(\.isASCII) { return .asValue }
        return text.count > 5 && !isPlain ? .anywhere : .asWord
    }

    // MARK: Lines

    func hide(in lines: [String]) -> [String] { lines.map(hide) }

    private func hide(_ line: String) -> String {
        let bytes = Array(line.utf8)
        let text = DecodedText(line)
        var covers = kept(pathCovers(in: text) + nameCovers(in: text), in: text)
        if text.bytes != bytes {
            // What looks like an escape may be none, as in `C:\xaa.mp4`.
            let written = DecodedText(line, isDecoded: false)
            covers += kept(nameCovers(in: written), in: written)
        }
        guard !covers.isEmpty else { return line }
        covers.sort { ($0.range.lowerBound, $1.range.count) < ($1.range.lowerBound, $0.range.count) }
        var merged: [(range: Range<Int>, widest: Cover)] = []
        for cover in covers {
            guard let last = merged.last, cover.range.lowerBound < last.range.upperBound else {
                merged.append((cover.range, cover))
                continue
            }
            let end = max(last.range.upperBound, cover.range.upperBound)
            let widest = cover.range.count > last.widest.range.count ? cover : last.widest
            merged[merged.count - 1] = (last.range.lowerBound..<end, widest)
        }
        var (out, end): ([UInt8], Int) = ([], 0)
        for (range, widest) in merged {
            out += bytes[end..<range.lowerBound] + widest.mark.utf8
            end = range.upperBound
        }
        return String(decoding: out + bytes[end...], as: UTF8.self)
    }

    /// Those that are not part of a path of the configuration, by their places in the line as it is written.
    private func kept(_ covers: [Cover], in text: DecodedText) -> [Cover] {
        guard !covers.isEmpty else { return [] }
        let stays = keptRanges(in: text)
        return covers.filter { cover in
            !stays.contains { $0.lowerBound <= cover.range.lowerBound && cover.range.upperBound <= $0.upperBound }
        }.map { cover in
            let places = text.places[cover.range]
            return Cover(
                range: (places.first?.lowerBound ?? 0)..<(places.last?.upperBound ?? 0), mark: cover.mark)
        }
    }

    private func keptRanges(in text: DecodedText) -> [Range<Int>] {
        text.bytes.indices.compactMap { index in
            stays.matches(in: text.bytes, at: index).last { !text.isInsideWord($0.range.upperBound) }?.range
        }
    }

    // MARK: Names

    private func nameCovers(in text: DecodedText) -> [Cover] {
        text.bytes.indices.compactMap { index in
            let match = names.matches(in: text.bytes, at: index).last {
                stands($0.range, as: $0.value.standing, in: text)
            }
            return match.map { Cover(range: $0.range, mark: $0.value.mark) }
        }
    }

    private func stands(_ range: Range<Int>, as standing: Standing, in text: DecodedText) -> Bool {
        if standing == .anywhere { return true }
        guard !text.isInsideWord(range.lowerBound), !text.isInsideWord(range.upperBound) else { return false }
        if standing == .asWord { return true }
        guard range.lowerBound > 0 else { return false }
        let bytes = text.bytes
        let (before, after) = (bytes[range.lowerBound - 1], bytes[range.upperBound...].first)
        switch before {
        case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "`"): return after == before
        case UInt8(ascii: "=") where standing == .asValue:
            return after.map { " ,&".utf8.contains($0) } ?? true
        case UInt8(ascii: "="):
            return (after == nil || after == UInt8(ascii: " "))
                && ["path", "file", "name", "relative", "what"].contains { key in
                    bytes[..<(range.lowerBound - 1)].suffix(key.utf8.count).elementsEqual(key.utf8)
                }
        case UInt8(ascii: "/"):
            // `HTTP/1.1` is no path.
            guard after == UInt8(ascii: "."), let next = bytes[range.upperBound...].dropFirst().first else {
                return true
            }
            return !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next)
        default: return false
        }
    }

    // MARK: Paths below watched folders

    private func pathCovers(in text: DecodedText) -> [Cover] {
        rootedNames(in: text).map { start, begin in
            let known = paths.matches(in: text.bytes, at: start).last { !text.isInsideWord($0.range.upperBound) }
            if let end = certainEnd(of: begin, from: start, in: text) {
                if let known, known.range.upperBound <= end,
                    Self.isEnding(text.bytes[known.range.upperBound..<end])
                {
                    return Cover(range: begin..<known.range.upperBound, mark: known.value.mark)
                }
                return unknown(begin..<end, text)
            }
            let end = probableEnd(of: begin, in: text.bytes)
            guard let known else { return unknown(begin..<end, text) }
            let rest = text.bytes[known.range.upperBound..<max(end, known.range.upperBound)]
            // The folder `Anna` is known, and `Anna Miller` and `Anna/b.mp4` are not.
            if known.value.isFolder, [UInt8(ascii: " "), UInt8(ascii: "/")].contains(rest.first) {
                return unknown(begin..<end, text)
            }
            return Cover(range: begin..<known.range.upperBound, mark: known.value.mark)
        }
    }

    private func unknown(_ range: Range<Int>, _ text: DecodedText) -> Cover {
        Cover(range: range, mark: hidden.mark(FilePath(bytes: text.bytes[range]).display))
    }

    /// Nothing, or an ending that a companion or a temporary name has: `.xmp`.
    private static func isEnding(_ rest: ArraySlice<UInt8>) -> Bool {
        rest.isEmpty
            || rest.first == UInt8(ascii: ".") && (2...9).contains(rest.count)
                && rest.dropFirst().allSatisfy { $0.isLetterOrDigit(or: "") }
    }

    /// Where a path begins, and the name in it below its watched folder.
    private func rootedNames(in text: DecodedText) -> [(start: Int, begin: Int)] {
        text.bytes.indices.compactMap { start in
            guard let root = roots.matches(in: text.bytes, at: start).last?.range, root.upperBound < text.bytes.count
            else { return nil }
            return (start, root.upperBound)
        }
    }

    /// The end of a path that is in quotes, the value of a field, or part of an address; `nil` where it is in a
    /// sentence.
    private func certainEnd(of begin: Int, from start: Int, in text: DecodedText) -> Int? {
        guard start > 0 else { return nil }
        let (bytes, rest) = (text.bytes, begin..<text.bytes.count)
        let before = bytes[start - 1]
        switch before {
        // A value of the log with spaces is in quotes, and an address has none unless they are coded.
        case UInt8(ascii: "="), UInt8(ascii: "/"):
            return rest.first {
                text.places[$0].count == 1 && [UInt8(ascii: " "), UInt8(ascii: "\"")].contains(bytes[$0])
            } ?? rest.upperBound
        // A quote in a value is written with a backslash, or all of them are.
        case UInt8(ascii: "\""):
            return rest.first { bytes[$0] == before && text.places[$0].count == text.places[start - 1].count }
        case UInt8(ascii: "`"): return rest.first { bytes[$0] == before }
        // `Anna's film.mp4` goes on after it.
        case UInt8(ascii: "'"):
            return rest.first {
                bytes[$0] == before && ($0 + 1 == bytes.count || !bytes[$0 + 1].isLetterOrDigit(or: ""))
            }
        default: return nil
        }
    }

    /// The end of a name in a sentence. It may have spaces, so it ends where a reason, a destination or another column
    /// begins.
    private func probableEnd(of begin: Int, in bytes: [UInt8]) -> Int {
        let rest = bytes[begin...]
        let ends = [": ", "; ", "  ", " -> ", " has not settled for "].compactMap {
            rest.firstRange(of: Array($0.utf8))?.lowerBound
        }
        guard let end = ends.min() else { return bytes.count }
        guard bytes[end...].starts(with: "  ".utf8) else { return end }
        // `PATH to DESTINATION  state`
        let words = bytes[begin..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count > 2, let name = words.last, words[words.count - 2].elementsEqual("to".utf8) else {
            return end
        }
        return name.startIndex - " to ".utf8.count
    }

    // MARK: Names of files that no list has

    /// The paths below watched folders, and in the field `path`, whose ends are certain, as they are displayed.
    func certainPaths(in line: String) -> [String] {
        let text = DecodedText(line)
        var found = rootedNames(in: text).compactMap { start, begin in
            certainEnd(of: begin, from: start, in: text).map { start..<$0 }
        }
        let bytes = text.bytes
        for key in ["path=", "path=\"", "\"path\":\""] {
            var start = 0
            while let range = bytes[start...].firstRange(of: Array(key.utf8)) {
                start = range.upperBound
                guard bytes[start...].first == UInt8(ascii: "/"),
                    let end = certainEnd(of: start, from: start, in: text)
                else { continue }
                found.append(start..<end)
            }
        }
        let stays = keptRanges(in: text)
        return found.filter { path in
            let below = stays.filter { $0.lowerBound == path.lowerBound && $0.upperBound <= path.upperBound }
            // A watched folder stays itself, and other folders of the configuration with all that is in them.
            return below.allSatisfy { range in
                range.upperBound < path.upperBound
                    && !roots.matches(in: bytes, at: path.lowerBound).isEmpty
            }
        }.map { FilePath(bytes: bytes[$0]).display }
    }
}
