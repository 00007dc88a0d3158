import Core
import Linux
import TestKit
import Testing

@testable import Media

@Suite("Facts")
struct FactsTests {
    struct Case: CustomTestStringConvertible {
        let name: String
        let facts: MediaFacts
        var testDescription: String { name }
    }

    /// 2024-05-01T10:20:30Z.
    private static let recorded = WallTime(milliseconds: 1_714_558_830_000)

    private static func facts(_ duration: Int64?, make: String? = nil, model: String? = nil) -> MediaFacts {
        MediaFacts(recorded: recorded, duration: duration, width: 64, height: 48, make: make, model: model)
    }

    static let cases = [
        Case(name: "plain.mp4", facts: facts(1000)),
        Case(name: "faststart.mp4", facts: facts(1000)),
        // The `moov` was written before anything was recorded.
        Case(name: "fragmented.mp4", facts: facts(nil)),
        Case(name: "rotated.mp4", facts: MediaFacts(duration: 1000, width: 48, height: 64)),
        Case(name: "camera.mov", facts: facts(1000, make: "Acme", model: "Trail 9")),
        Case(
            name: "keys.mov",
            facts: MediaFacts(
                recorded: WallTime(milliseconds: 1_714_558_831_000), duration: 1000, width: 64, height: 48,
                make: "Acme",
                model: "Phone 7")),
        Case(name: "video.mkv", facts: facts(1000)),
        Case(name: "video.webm", facts: facts(1000)),
        Case(name: "video.avi", facts: MediaFacts(duration: 400, width: 64, height: 48)),
        Case(name: "video.ts", facts: MediaFacts()),
        Case(name: "picture.jpg", facts: MediaFacts(width: 64, height: 48)),
        Case(
            name: "camera.jpg",
            facts: MediaFacts(recorded: recorded, width: 48, height: 64, make: "Acme", model: "Still 5")),
    ]

    @Test("facts of a recording match the values given to its encoder", arguments: cases)
    func recordings(_ it: Case) throws {
        #expect(try FakeFile(Recordings.read("whole/" + it.name)).facts() == it.facts)
    }

    @Test("a time without an offset is local time")
    func local() throws {
        let facts = try FakeFile(Recordings.read("whole/local.jpg")).facts()
        let recorded = try #require(facts.recorded)
        #expect(LocalTime(recorded).formatted("%F %T") == "2024-05-01 12:20:30")
        #expect(facts.camera == "Acme Still 5")
    }

    @Test("a header time of 0, or of 1970, counts as none", arguments: [0, 1, 2_082_844_800])
    func unset(_ time: Int) throws {
        let header =
            big(0, 4) + big(time, 4) + big(0, 4) + big(1000, 4) + big(5000, 4) + [UInt8](repeating: 0, count: 80)
        let file = FakeFile(box("ftyp") + box("moov", box("mvhd", header)))
        #expect(try file.facts() == MediaFacts(duration: 5000))
    }

    @Test("a header of version 1 has long times")
    func long() throws {
        let header =
            big(1 << 24, 4) + big(2_082_844_800 + 86_400, 8) + big(0, 8) + big(90_000, 4) + big(90_000 * 7200, 8)
            + [UInt8](repeating: 0, count: 80)
        let file = FakeFile(box("ftyp") + box("moov", box("mvhd", header)))
        #expect(try file.facts() == MediaFacts(recorded: WallTime(milliseconds: 86_400_000), duration: 7_200_000))
    }

    @Test("the durations of all fragments add up if the header has none")
    func fragments() throws {
        let header = big(0, 12) + big(1000, 4) + [UInt8](repeating: 0, count: 84)
        let total = box("mvex", box("mehd", big(0, 4) + big(61_500, 4)))
        #expect(try FakeFile(box("ftyp") + box("moov", box("mvhd", header) + total)).facts().duration == 61_500)
    }

    @Test("a Matroska date counts from 2001")
    func matroskaDate() throws {
        let date: [UInt8] = [0x44, 0x61, 0x88] + big(86_400_000_000_000, 8)
        let info: [UInt8] = [0x15, 0x49, 0xA9, 0x66, 0x80 | UInt8(date.count)] + date
        let file = FakeFile(
            [0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x80 | UInt8(info.count)] + info)
        #expect(try file.facts().recorded?.description == "2001-01-02T00:00:00.000Z")
    }

    @Test("a name is short, printable and without surrounding space")
    func text() {
        #expect(MediaFactsReader.text("  Acme\u{1B}[2J \0rest".utf8) == "Acme[2J")
        #expect(MediaFactsReader.text("\0".utf8) == nil)
        #expect(MediaFactsReader.text([UInt8](repeating: 65, count: 500))?.count == 64)
        #expect(MediaFactsReader.text([0xFF, 0x41]) == "\u{FFFD}A")
    }

    @Test("other files have no facts")
    func nothing() throws {
        #expect(try FakeFile(Array("hello".utf8)).facts().isEmpty)
        #expect(try FakeFile([]).facts().isEmpty)
    }
}
