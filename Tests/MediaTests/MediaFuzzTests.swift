import Core
import Synchronization
import TestKit
import TestTraits
import Testing

@testable import Media

/// Recordings, damaged in every way and with any claimed size: each ends soon with a verdict, and with plausible
/// metadata.
@Suite("Fuzz: containers and their facts", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct MediaFuzzTests {
    /// Names of boxes, chunks, elements and markers, and ends of their sizes.
    private static let words: [String] = [
        "ftyp", "moov", "mdat", "moof", "mvex", "trak", "tkhd", "mdia", "hdlr", "vide", "mvhd", "udta", "meta", "keys",
        "ilst", "data", "mdta", "RIFF", "LIST", "AVI ", "AVIX", "hdrl", "avih", "strl", "indx", "movi", "idx1",
        "Exif\0\0",
        "II*\0", "MM\0*", "G", "\0\0\0\0", "\0\0\0\u{1}", "\0\0\0\u{8}", "\0\0\0\u{8}moov", "\0\0\0\u{8}free",
        "\0\0\0\u{1}mdat\u{7F}", "\u{1}", "\u{8}", "\u{10}",
    ]

    private static func mutator() throws -> Mutator {
        let whole = try Recordings.whole.map { try Recordings.read("whole/" + $0) }
        let cut = try ["plain.mp4", "video.mkv", "live.mkv", "video.avi"].map { try Recordings.read("cut/" + $0) }
        return Mutator(whole + cut, words: words)
    }

    @Test("fuzzed containers end in a verdict after few reads, always the same")
    func verdicts() throws {
        var verdicts: Set<String> = []
        let fuzz = Fuzz("containers", rounds: 600, share: 4)
        try fuzz.each(Self.mutator()) { round in
            let input = Self.hurt(&round)
            let file = FakeFile(size: Self.size(input, &round), [(0, input)])
            let verdict = try file.verdict(named: "clip.mp4")
            let asked = file.asked.withLock { $0 }
            try round.expect(asked.times <= HeaderReader.maxReads, "\(asked.times) reads")
            try round.expect(asked.bytes <= HeaderReader.maxBytes, "\(asked.bytes) bytes")
            try round.expect(try file.verdict(named: "clip.mp4") == verdict, "the second verdict differs")
            if let reason = verdict.reason {
                try round.expect(
                    reason.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "the reason is not printable: \(reason)")
            }
            verdicts.insert("\(verdict)".prefix { $0 != "(" } + (verdict.isWhole || verdict.isNotWhole ? "" : "!"))
        }
        if fuzz.rounds >= 600 { #expect(verdicts.isSuperset(of: ["complete", "incomplete", "unknownFormat!"])) }
    }

    @Test("fuzzed containers give only valid facts")
    func facts() throws {
        let fuzz = Fuzz("media-facts", rounds: 600, share: 4)
        var told = 0
        try fuzz.each(Self.mutator()) { round in
            let input = Self.hurt(&round)
            let file = FakeFile(size: Self.size(input, &round), [(0, input)])
            let facts = try file.facts()
            let asked = file.asked.withLock { $0 }
            try round.expect(
                asked.times <= HeaderReader.maxReads && asked.bytes <= HeaderReader.maxBytes,
                "the facts cost too many reads")
            if !facts.isEmpty { told += 1 }
            if let duration = facts.duration {
                try round.expect(duration >= 0 && duration <= 366 * 86_400_000 + 1000, "lasts \(duration) ms")
            }
            for number in [facts.width, facts.height] {
                if let number { try round.expect((1...1_000_000).contains(number), "\(number) pixels") }
            }
            for text in [facts.make, facts.model, facts.camera] {
                guard let text else { continue }
                try round.expect(!text.isEmpty && text.count <= 130, "a name of \(text.count) letters")
                try round.expect(FilePath(text).display.count >= text.count, "the name is not printable")
            }
            // Formatting must work too, since it makes names.
            if let recorded = facts.recorded { try round.expect(!recorded.description.isEmpty, "the time has no text") }
        }
        if fuzz.rounds >= 600 { #expect(told > fuzz.rounds / 10) }
    }

    @Test("damaged ffprobe output gives only valid facts")
    func answers() throws {
        let answer = """
            {"streams": [{"codec_type": "video", "width": 64, "height": 48}], "format": {"duration": "1.04",
            "tags": {"creation_time": "2024-05-01T10:20:30.000000Z", "make": "Acme", "model": "5"}}}
            """
        let mutator = Mutator(
            [Array(answer.utf8)], words: ["\"", "{", "[", "null", "1e400", "\\ud800", "\0", "-", ".", "9999-99-99T"],
            limit: 3000)
        try Fuzz("ffprobe", rounds: 1000, share: 4).each(mutator) { round in
            let facts = FFProbe.facts(from: round.input)
            if let width = facts.width { try round.expect(width > 0, "\(width) pixels") }
            if let duration = facts.duration { try round.expect(duration >= 0, "lasts \(duration) ms") }
        }
    }

    /// Sizes are binary, so some are replaced by values that the mutator's words cannot express.
    private static func hurt(_ round: inout Fuzz.Round) -> [UInt8] {
        var input = round.input
        guard !input.isEmpty, Bool.random(using: &round.dice) else { return input }
        for _ in 0..<Int.random(in: 1...3, using: &round.dice) {
            let at = Int.random(in: 0..<input.count, using: &round.dice)
            let byte: UInt8 = [0xFF, 0x7F, 0x80, 0x00, 0x01].randomElement(using: &round.dice) ?? 0
            for index in at..<min(input.count, at + 1 << Int.random(in: 0...3, using: &round.dice)) {
                input[index] = byte
            }
        }
        return input
    }

    private static func size(_ input: [UInt8], _ round: inout Fuzz.Round) -> Int64 {
        switch Int.random(in: 0..<8, using: &round.dice) {
        case 0: Int64.max
        case 1: Int64(UInt32.max)
        case 2: Int64(input.count) + Int64.random(in: 0...1 << 34, using: &round.dice)
        default: Int64(input.count)
        }
    }
}
