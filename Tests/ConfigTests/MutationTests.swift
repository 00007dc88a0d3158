import Core
import Testing

@testable import Config

@Suite("A damaged configuration")
struct MutationTests {
    /// The same numbers for the same seed, so that a failure can be looked at again.
    struct Dice: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            // splitmix64
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    static let whole = """
        version: 1
        state: /var/lib/sluice
        staging: {path: /var/lib/sluice/staging, copy: auto, max_size: 200 GB, keep_free: 5 GB}
        folders:
          - name: front-door
            path: /srv/camera/front
            recursive: true
            include: ["*.mp4", "[a-c]*.mkv"]
            exclude: &no ["*.tmp"]
            settle: {quiet_for: 2s, writers: lease}
            existing: upload
            upload_to: [archive, disk]
            after_upload: {source: move, to: "/srv/done/{year}/{month}/{name}"}
            priority: 10
            metadata: {title: "{folder} {recorded:%Y-%m-%d %H:%M}"}
            context: {camera: front}
            retry: {first: 1s, max: 1h30m, attempts: 3}
          - {name: garden, path: /srv/camera/garden, exclude: *no, upload_to: [disk]}
        destinations:
          archive: {type: tus, url: "https://nas.example/files", token: {file: /etc/sluice/t}, checksum: sha1}
          disk: {type: directory, path: /mnt/中文, concurrency: 1}
        policy:
          concurrency: {total: 3, per_destination: 2}
          order: newest-first
        control:
          socket: /run/sluice/control.sock
        """

    private static let scraps: [String] = [
        "\t", "\n", "\r", " ", ":", ": ", "-", "- ", "{", "}", "[", "]", "*", "&a ", "*a", "\"", "'", "|", ">", "#",
        "?",
        "!", "!!int ", "%", "@", "<<: ", "no", "010", "1:30", "9999999999999999999", "\u{FEFF}", "\u{85}", "\u{2028}",
        "\0",
        "é", "\u{301}", "中", "---\n", "...\n", "~", "{file: /x}", "{name}", "}}", "\\", "..", "/",
    ]

    private func damaged(_ dice: inout Dice) -> [UInt8] {
        var bytes = Array(Self.whole.utf8)
        for _ in 0..<Int.random(in: 1...4, using: &dice) {
            let at = Int.random(in: 0..<bytes.count, using: &dice)
            let end = min(bytes.count, at + Int.random(in: 1...12, using: &dice))
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: bytes.removeSubrange(at..<end)
            case 1: bytes[at] = UInt8.random(in: 0...255, using: &dice)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: 0...bytes.count, using: &dice))
            case 3: bytes.removeLast(Int.random(in: 0..<(bytes.count / 4), using: &dice))
            default: bytes.insert(contentsOf: Self.scraps.randomElement(using: &dice)?.utf8 ?? "".utf8, at: at)
            }
        }
        return bytes
    }

    @Test("gives settings, or errors with places in the file", arguments: 1...8 as ClosedRange<UInt64>)
    func survives(seed: UInt64) throws {
        _ = try read(Self.whole)
        var dice = Dice(state: seed)
        var refused = 0
        for round in 0..<250 {
            let bytes = damaged(&dice)
            // Breaks of every kind that YAML knows; one more line than breaks.
            let lines =
                String(decoding: bytes, as: UTF8.self).unicodeScalars.filter {
                    ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"].contains($0)
                }.count + 1
            do throws(ConfigErrors) {
                _ = try Settings.read([("a.yaml", bytes)], types: types, disk: .unchecked) { _ in nil }
            } catch {
                refused += 1
                try #require(!error.problems.isEmpty, "seed \(seed), round \(round)")
                for problem in error.problems {
                    if let line = problem.line, let column = problem.column {
                        #expect((1...lines).contains(line) && column >= 1, "seed \(seed), round \(round): \(problem)")
                        #expect(problem.excerpt != nil, "seed \(seed), round \(round): \(problem)")
                    } else {
                        // Only what is about the whole file has no place.
                        let whole = ["is not UTF-8", "says nothing"]
                        #expect(
                            whole.contains { problem.text.hasPrefix($0) }, "seed \(seed), round \(round): \(problem)")
                    }
                }
            }
        }
        #expect(refused > 100)
    }
}
