import Core
import TestKit
import TestTraits
import Testing

/// Damaged values that people and machines write by hand: nothing traps, and an accepted value means exactly its text.
@Suite("Fuzz: values", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct ValueFuzzTests {
    @Test("a glob matches like a slow and simple matcher")
    func globs() throws {
        // A small alphabet, so that patterns match names.
        let patterns = [
            "*.mp4", "**/a*/**", "a/**/z", "[!a-c]?b*", "\\*[]x]", "raw/**", "?*?*?", "**a**/*b", "[a-é]*[!é]",
        ].map {
            Array($0.utf8)
        }
        let mutator = Mutator(
            patterns, words: ["*", "**", "**/", "?", "[a-b]", "[!a]", "/", "a", "b", "é", "]", "\\"], limit: 24)
        let alphabet: [UInt8] = Array("aAb/.x*[é🎥".utf8) + [0xC3, 0xA9, 0xE2, 0xF0, 0xFF]
        try Fuzz("globs", rounds: 1500, share: 4).each(mutator) { round in
            guard let pattern = String(validating: round.input, as: UTF8.self) else { return }
            let glob = Glob(pattern)
            for _ in 0..<4 {
                let count = Int.random(in: 0...10, using: &round.dice)
                let bytes = (0..<count).map { _ in alphabet.randomElement(using: &round.dice) ?? 0 }
                let name = FilePath(bytes: glob.matchesPath ? bytes : bytes.filter { $0 != UInt8(ascii: "/") })
                let wanted = SlowGlob(pattern).matches(name.bytes)
                try round.expect(glob.matches(name) == wanted, "\(pattern) against \(name): \(!wanted), not \(wanted)")
            }
        }
    }

    @Test("an accepted template returns its pieces, and a refused one the place and reason")
    func templates() throws {
        let seeds = [
            "/srv/done/{year}/{month}/{name}", "{folder}/{relative}", "{{{stem}}}-{recorded:%Y-%m-%d %H:%M}.{ext}",
        ]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) },
            words: [
                "{", "}", "{{", "}}", "{name}", "{nmae}", "{name:x}", "{recorded:", "{modified:%s}", ":", "\u{301}",
                "🎥",
            ])
        try Fuzz("templates", rounds: 1500).each(mutator) { round in
            guard let text = String(validating: round.input, as: UTF8.self) else { return }
            switch Result(catching: { () throws(Template.SyntaxError) in try Template(text) }) {
            case .success(let template):
                let back = template.pieces.map { piece in
                    switch piece {
                    case .text(let text): text.replacing("{", with: "{{").replacing("}", with: "}}")
                    case .placeholder(let name, let format): "{\(name)\(format.map { ":" + $0 } ?? "")}"
                    }
                }.joined()
                let again = try Template(back)
                try round.expect(again.pieces == template.pieces, "parsed again it is \(again.pieces)")
                _ = template.filled { name, _ in Array(name.utf8) }
            case .failure(let error):
                try round.expect((0...text.count).contains(error.offset), "the text has no place \(error.offset)")
                try round.expect(error.problem.count > 10, "the message is only \(error.problem)")
            }
        }
    }

    @Test("a path survives its display, and normalising it twice changes nothing more")
    func paths() throws {
        let seeds = ["/srv/camera/../front door/./clip.mp4", "a\\x5cb/ü\u{202E}/.hidden.tar.gz", "//x///..//"]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) }, words: ["/", "..", "/../", "\\", "\\xff", "\\x0", "\0", "\u{85}", "\u{1F}"],
            limit: 1000)
        try Fuzz("paths", rounds: 1000).each(mutator) { round in
            let path = FilePath(bytes: round.input)
            try round.expect(FilePath(display: path.display) == path, "shown as \(path.display)")
            try round.expect(printable(path.display) == path.display, "the text has control characters")
            let normal = path.normalised
            try round.expect(normal.normalised == normal, "\(normal) becomes \(normal.normalised)")
            try round.expect(
                !normal.isAbsolute || !normal.components.contains(".."), "the path still contains `..`: \(normal)")
            try round.expect(
                path.parent.appending(path.name).normalised == normal, "parent and name do not make the path")
            _ = (path.stem, path.fileExtension, path.relative(to: "/srv"))
            // Any typed text is parsed without a trap.
            _ = FilePath(display: String(decoding: round.input, as: UTF8.self))
        }
    }

    @Test("an id is accepted in any case with one form, and its successor is greater")
    func uploadIDs() throws {
        let seeds = ["01JQZX3M8F0000000000000000", "01jqzx3m8fzzzzzzzzzzzzzzzz", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: ["I", "ſ", "ß", "U", "Z", "0", "\0"], limit: 64)
        try Fuzz("upload ids", rounds: 1500).each(mutator) { round in
            guard let id = UploadID(String(decoding: round.input, as: UTF8.self)) else { return }
            try round.expect(UploadID(id.text.lowercased()) == id, "lower case is not accepted")
            try round.expect(id.text.utf8.count == 26, "the id has \(id.text.utf8.count) bytes")
            for chance in [0, 1, .max] as [UInt128] {
                let next = id.next(chance: chance)
                try round.expect(next > id || id.text.hasPrefix("7ZZZZZZZZZ"), "the next id is \(next)")
                try round.expect(
                    next.text.prefix(12) != id.text.prefix(12) || id.text.hasPrefix("7ZZZZZZZZZ"),
                    "12 characters do not distinguish it from \(next)")
            }
        }
    }

    @Test("no time is too far away to be printed or moved")
    func moments() throws {
        try Fuzz("moments", rounds: 1500).each(Mutator([[0x30]], words: [])) { round in
            let near = Int64.random(in: -1000...1000, using: &round.dice)
            let ends: [Int64] = [.min, .max, 0, -62_135_596_800_000, 253_402_300_800_000, 1_700_000_000_000]
            let milliseconds = (ends.randomElement(using: &round.dice) ?? 0).addingClamped(near)
            let time = WallTime(milliseconds: milliseconds)
            let utc = time.utc
            try round.expect((1...12).contains(utc.month) && (1...31).contains(utc.day), "\(milliseconds) is \(time)")
            try round.expect((0...59).contains(utc.minute) && (0...23).contains(utc.hour), "\(milliseconds) is \(time)")
            let mark = MonotonicTime(nanoseconds: milliseconds)
            let step = Duration.seconds(ends.randomElement(using: &round.dice) ?? 0)
            let (later, laterMark) = (time.advanced(by: step), mark.advanced(by: step))
            try round.expect(step < .zero ? later <= time : later >= time, "\(milliseconds) ms moved by \(step)")
            try round.expect(
                step < .zero ? laterMark <= mark : laterMark >= mark, "nanoseconds move in the other direction")
            _ = mark.since(MonotonicTime(nanoseconds: ends.randomElement(using: &round.dice) ?? 0))
        }
    }

    @Test("a secret in a known place is never shown, and redacted text stays unchanged")
    func redaction() throws {
        let secret = "Zq7canaryX9k2"
        let carriers = ["Authorization: Bearer ", "token=", "https://h/f?X-Amz-Signature=", "X-Api-Key: ", "?sig="]
        let mutator = Mutator(
            ["PUT https://nas.example/x?a=1&b=2 said 503", "a: b=c \"d\" 'e' <f>", "Basic x, Bearer y; z"].map {
                Array($0.utf8)
            }, words: ["://", "@", "=", ": ", "Bearer ", "basic ", "&", "#", "\"", "token", "\u{301}", "\0"], limit: 400
        )
        try Fuzz("redaction", rounds: 1000).each(mutator) { round in
            let noise = String(decoding: round.input, as: UTF8.self)
            // With a blank between them, so that the noise cannot change the name.
            let text = noise + " " + (carriers.randomElement(using: &round.dice) ?? "") + secret + " " + noise
            let shown = redacted(text)
            try round.expect(!occurs(secret, in: shown), "the text shows the secret: \(shown)")
            try round.expect(redacted(shown) == shown, "redacted twice it is \(redacted(shown))")
            try round.expect(printable(printable(text)) == printable(text), "a printable text changes again")
        }
    }
}

/// The table of `Glob`, tried in every possible way, character by character.
private struct SlowGlob {
    private let pattern: [UInt32]

    init(_ pattern: String) { self.pattern = pattern.unicodeScalars.map(\.value) }

    func matches(_ name: [UInt8]) -> Bool { rest(pattern[...], Self.letters(name)[...], isAtStart: true) }

    /// Scalars, followed in order by bytes that are part of none.
    private static func letters(_ bytes: [UInt8]) -> [UInt32] {
        var letters: [UInt32] = []
        var rest = bytes[...]
        while let first = rest.first {
            let length = (1...4).first { String(validating: rest.prefix($0), as: UTF8.self)?.isEmpty == false }
            let text = length.flatMap { String(validating: rest.prefix($0), as: UTF8.self) }
            letters.append(text?.unicodeScalars.first?.value ?? 0x11_0000 + UInt32(first))
            rest = rest.dropFirst(length ?? 1)
        }
        return letters
    }

    private func rest(_ pattern: ArraySlice<UInt32>, _ name: ArraySlice<UInt32>, isAtStart: Bool) -> Bool {
        let slash = value("/")
        guard let first = pattern.first else { return name.isEmpty }
        switch first {
        case value("*"):
            let stars = pattern.prefix { $0 == first }.count
            let after = pattern.dropFirst(stars)
            if stars > 1, isAtStart, after.first == slash {
                let next = after.dropFirst()
                if rest(next, name, isAtStart: true) { return true }
                return name.indices.contains { name[$0] == slash && rest(next, name[($0 + 1)...], isAtStart: true) }
            }
            for end in name.startIndex...name.endIndex {
                if rest(after, name[end...], isAtStart: false) { return true }
                if stars == 1, end < name.endIndex, name[end] == slash { return false }
            }
            return false
        case value("?"):
            guard let letter = name.first, letter != slash else { return false }
            return rest(pattern.dropFirst(), name.dropFirst(), isAtStart: false)
        case value("["):
            guard let (holds, after) = set(pattern.dropFirst()) else { break }
            guard let letter = name.first, letter != slash, holds(letter) else { return false }
            return rest(after, name.dropFirst(), isAtStart: false)
        case value("\\") where pattern.count > 1:
            let literal = pattern[pattern.startIndex + 1]
            guard let letter = name.first, low(letter) == low(literal) else { return false }
            return rest(pattern.dropFirst(2), name.dropFirst(), isAtStart: literal == slash)
        default: break
        }
        guard let letter = name.first, low(letter) == low(first) else { return false }
        return rest(pattern.dropFirst(), name.dropFirst(), isAtStart: first == slash)
    }

    private func set(_ pattern: ArraySlice<UInt32>) -> ((UInt32) -> Bool, ArraySlice<UInt32>)? {
        var body = pattern
        let isInverted = body.first == value("!") || body.first == value("^")
        if isInverted { body = body.dropFirst() }
        guard let close = body.dropFirst().firstIndex(of: value("]")) else { return nil }
        var members: [ClosedRange<UInt32>] = []
        var end = close
        var at = body.startIndex
        // A bracket that looks like the end may belong to a range only if it is not the end: `x-]` has three members.
        while at < end {
            if at + 2 < pattern.endIndex, pattern[at + 1] == value("-"), pattern[at + 2] != value("]") {
                if pattern[at] <= pattern[at + 2] { members.append(pattern[at]...pattern[at + 2]) }
                at += 3
                if at > end {
                    guard let later = pattern[at...].firstIndex(of: value("]")) else { return nil }
                    end = later
                }
            } else {
                members.append(pattern[at]...pattern[at])
                at += 1
            }
        }
        let low = low, high = high
        return (
            { letter in
                members.contains { $0.contains(low(letter)) || $0.contains(high(letter)) } != isInverted
            }, pattern[(end + 1)...]
        )
    }

    private func value(_ scalar: Unicode.Scalar) -> UInt32 { scalar.value }
    private func low(_ letter: UInt32) -> UInt32 { (0x41...0x5A).contains(letter) ? letter | 0x20 : letter }
    private func high(_ letter: UInt32) -> UInt32 { (0x61...0x7A).contains(letter) ? letter & ~0x20 : letter }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? (other > 0 ? .max : .min) : sum
    }
}
