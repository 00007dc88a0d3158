import Core
import TestKit
import Testing

@Suite("Words of a command")
struct ExportWordsTests {
    @Test("placeholders are filled byte for byte, doubled braces stand for one")
    func filled() throws {
        let words = try CommandWords([
            "ffmpeg", "-i", "{input}", "-vf", "a={{b}}", "-metadata", "t={folder}/{stem}!", "{output}",
        ])
        let filled = words.filled { name in
            switch name {
            case .input: [0x2F, 0xFF]
            case .output: Array("/o".utf8)
            default: Array(name.rawValue.utf8)
            }
        }
        #expect(
            filled == [
                Array("ffmpeg".utf8), Array("-i".utf8), [0x2F, 0xFF], Array("-vf".utf8), Array("a={b}".utf8),
                Array("-metadata".utf8), Array("t=folder/stem!".utf8), Array("/o".utf8),
            ])
    }

    @Test(
        "a mistake names the word and the remedy",
        arguments: [
            ([], 0, "no program"), (["{input}", "{output}"], 0, "the program itself"),
            (["a", "{input}"], 0, "`{output}`"), (["a", "{output}"], 0, "`{input}`"),
            (["a", "{inptu}", "{output}"], 1, "did you mean `{input}`?"), (["a", "x}"], 1, "without its `{`"),
            (["a", "{input"], 1, "no placeholder"), (["a", "{what}"], 1, "`{{` for the brace"),
        ])
    func mistakes(_ words: [String], _ word: Int, _ text: String) {
        #expect {
            _ = try CommandWords(words)
        } throws: { error in
            guard let mistake = error as? CommandWords.SyntaxError else { return false }
            return mistake.word == word && mistake.problem.contains(text)
        }
    }

    @Test("ffmpeg's progress becomes a fraction of the named duration")
    func progress() {
        var progress = ExportProgress()
        for line in [
            "ffmpeg version 5.1", "  Duration: 00:01:40.00, start: 0.000000, bitrate: 1 kb/s", "out_time_us=N/A",
        ] {
            progress.parse(line)
        }
        #expect(progress.fraction == nil && progress.length == 100)
        progress.parse("out_time_us=25000000")
        #expect(progress.fraction == 0.25)
        progress.parse("  Duration: 00:00:10.00, start: 0")
        progress.parse("out_time_ms=50000000")
        #expect(progress.fraction == 0.5)
        progress.parse("out_time_us=999000000")
        #expect(progress.fraction == 1)
        progress.parse("progress=end")
        #expect(progress.fraction == 1)
    }

    @Test(
        "a percentage is found anywhere in the output, and nonsense changes nothing",
        arguments: [
            ("12%", 0.12), ("Encoding: task 1 of 1, 45.67 % (30 fps)", 0.4567), ("250%", 1), ("%", nil),
            ("100 percent", nil),
            ("out_time_us=-5", nil), ("out_time_us=inf", nil), ("x%y", nil), ("1.2.3%", nil),
        ] as [(String, Double?)])
    func percent(_ line: String, _ expected: Double?) {
        var progress = ExportProgress()
        progress.parse(line)
        if let expected {
            #expect(abs((progress.fraction ?? -1) - expected) < 0.000_1)
        } else {
            #expect(progress == ExportProgress())
        }
    }

    @Test("any template and any output end in a result")
    func anything() {
        var dice = Dice(seed: 4)
        let pieces = [
            "{", "}", "{{", "}}", "{input}", "{output}", "out_time_us=", "Duration: ", "progress=", "%", "9", ".", ":",
            "-", "1e9", "nan", "ü", " ",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...8, using: &dice)).map { _ in pieces.randomElement(using: &dice) ?? "" }
                .joined()
            if let words = try? CommandWords(["a", "{input}", text, "{output}"]) {
                #expect(words.filled { _ in [] }.count == 4)
            }
            var progress = ExportProgress()
            for line in ["Duration: 00:00:09.00,", text] { progress.parse(line) }
            #expect(progress.fraction.map { (0...1).contains($0) } ?? true)
        }
    }
}
