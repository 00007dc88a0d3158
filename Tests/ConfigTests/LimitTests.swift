import Core
import Testing

@testable import Config

@Suite("Limits of a configuration")
struct LimitTests {
    @Test("too large an expansion of aliases is refused, at the first such alias")
    func billionLaughs() {
        var text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
        for level in 1...9 {
            let aliases = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            text += "a\(level): &a\(level) [\(aliases)]\n"
        }
        let answer = objections(to: text)
        // a0 has 10 + 1 nodes, a1 has 111, a3 has 11,111; the ninth alias of a4 exceeds 100,000.
        #expect(answer.hasPrefix("a.yaml:5:"))
        #expect(answer.contains("more than 100000 values, with aliases expanded"))
    }

    @Test("aliases are accepted")
    func aliases() throws {
        let settings = try read(
            """
            version: 1
            folders:
              - {name: a, path: /a, include: &video ["*.mp4", "*.mkv"], upload_to: &to [nas]}
              - {name: b, path: /b, include: *video, upload_to: *to}
            destinations:
              nas: {type: tus, url: "https://nas.example/"}
            """
        ).settings
        #expect(settings.folders.map(\.watch.include) == [["*.mp4", "*.mkv"], ["*.mp4", "*.mkv"]])
    }

    @Test("a mistake behind an alias is reported once")
    func aliasMistake() {
        let error = #expect(throws: ConfigErrors.self) {
            try read("version: 1\npolicy: {retry: &r {first: 90}}\nstaging: {max_size: &x 5, keep_free: *x}")
        }
        #expect(error?.problems.map(\.place) == ["a.yaml:2:28", "a.yaml:3:21"])
    }

    @Test("nesting deeper than 32 levels is refused", arguments: ["[", "{a: ", "- ", "? "])
    func nesting(_ opening: String) {
        let answer = objections(to: "version: 1\nx:\n  " + String(repeating: opening, count: 50_000))
        #expect(answer.contains("nested deeper than 32 levels"))
    }

    @Test("aliases nested deeper than 32 levels are refused")
    func nestingByAlias() {
        var text = "a0: &a0 [x]\n"
        for level in 1...40 { text += "a\(level): &a\(level) [*a\(level - 1)]\n" }
        #expect(objections(to: text).contains("a.yaml:31:12: nested deeper than 32 levels"))
    }

    @Test("more than 100,000 values are refused")
    func nodes() {
        let answer = objections(to: "x: [" + String(repeating: "a,", count: 200_000) + "]")
        #expect(answer.contains("more than 100000 values"))
    }

    @Test("a file above 1 MiB is refused, and one of 1 MiB accepted")
    func size() throws {
        let filling = String(repeating: "#", count: (1 << 20) - minimal.utf8.count - 1)
        let full = minimal + "\n" + filling
        #expect(full.utf8.count == 1 << 20)
        _ = try read(full)
        #expect(objections(to: full + "#") == "a.yaml: is larger than 1 MiB, which no configuration is")
    }

    @Test("every amount up to the largest is accepted, and a larger one reported")
    func largestAmount() throws {
        func text(_ amount: String) -> String { minimal + "\nstaging: {max_size: \(amount)}" }
        for amount in [Int64.max, 1_023_999_999_999_999_998, 1_000_000_000_000_000] {
            #expect(try read(text("\(amount) B")).settings.staging.maxSize == amount)
        }
        for amount in ["9223372036854775808 B", "8388608 TiB", "9999999999999999999.999 TiB"] {
            #expect(objections(to: text(amount)).contains("more than 8 EiB"), "\(amount)")
        }
    }

    @Test("a thousand folders are accepted")
    func manyFolders() throws {
        var text = "version: 1\ndestinations: {nas: {type: tus, url: \"https://nas.example/\"}}\nfolders:\n"
        for number in 0..<1000 { text += "- {name: f\(number), path: /srv/\(number)/x, upload_to: [nas]}\n" }
        #expect(try read(text).settings.folders.count == 1000)
    }
}
