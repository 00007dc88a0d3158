import Core
import Linux
import TestKit
import TestTraits
import Testing

@testable import Config

/// Configurations that a person, an editor or a disk has damaged. The result is either valid settings, or errors that
/// name a place in the file and what to do.
@Suite("Fuzz: configuration", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct ConfigFuzzTests {
    /// A secret that must not appear in any message, whatever the rest of the file is.
    static let canary = "Zq7canaryX9k2"

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
            release_unsure: after 10m
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
          site:
            type: tus
            url: https://site.example:8443/files/
            token:
              literal: "Zq7canaryX9k2"
            headers: {X-Site: {env: SITE}, X-Other: {command: [/usr/bin/pass, show, nas]}}
            chunk_size: 8 MiB
            timeout: 90s
            verify_tls: false
            parallel: 4
        policy:
          concurrency: {total: 3, per_destination: 2}
          order: newest-first
          before_upload: {command: [/bin/may, go], timeout: 3s}
          windows: ["22:00-06:00", {between: "sat,sun 00:00-24:00", except: [2026-12-24]}]
          bandwidth: [{limit: 2 MB/s, when: {between: "mon-fri 08:00-18:00"}}, 40 Mbit/s]
          quotas:
            - {per: day, bytes: 20 GB}
            - {per: week, starts_on: sun, files: 500}
            - {name: lte, per: month, starts_on: 31, bytes: 300 GB, files: 9, direction: both, when: {metered: true}}
        control:
          socket: /run/sluice/control.sock
        metrics: {textfile: /var/lib/prometheus/node-exporter/sluice.prom, status_file: /run/sluice/status.json, every: 1m}
        retention: {completed: 3d, failed: never, cancelled: 1h30m, history: 1d}
        hooks:
          - {name: tell, on: [completed, failed], folders: [door], command: [/usr/local/bin/tell, --camera], timeout: 5s}
          - {url: "https://example.org/hook", headers: {X-Site: {env: SITE}}, secret: {env: KEY}, network: any, give_up_after: 1h}
        """

    static let words: [String] = [
        "\t", "\n", "\r", "\r\n", " ", "  ", ":", ": ", "-", "- ", "{", "}", "[", "]", ",", "*", "&a ", "*a", "*no",
        "\"",
        "'", "|", "|\n", ">-\n", "|9\n", "#", " #", "?", "? ", "!", "!!int ", "!!binary ", "!<tag:x> ", "%",
        "%YAML 1.1\n",
        "%TAG ! x\n", "@", "`", "<<: ", "<<: *no", "no", "yes", "010", "1:30", "~", "null", "\u{FEFF}", "\u{85}",
        "\u{2028}",
        "\u{2029}", "\0", "\u{7}", "\u{1B}[2J", "é", "\u{301}", "中", "ſ", "：", "‑", "＊", "---\n", "...\n", "--- ",
        "{file: /x}", "{literal: x}", "{env: X}", "{name}", "{{", "}}", "\\", "\\x", "\\U0010FFFF", "..", "/", "/..",
        "//",
        "&a [*a]", "[[[[[[[[", "{a: {a: {a: ", "- - - - - ", "9999999999999999999 TiB", "1.0001 GB", "1d1d", "0s",
        "                                ", "https://u:p@h/", "tus", "directory", "version: 1\n", "folders:\n",
        "\u{10FFFF}",
    ]

    /// The examples for new users, and a file with nearly every key.
    static func seeds() throws -> [[UInt8]] {
        let folder = Repository.root.appending("config")
        let examples = try Files.names(in: folder).filter { $0.fileExtension == "yaml" }.sorted()
        let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b, *b]\nversion: 1\n"
        return try [whole, whole, minimal, laughs].map { Array($0.utf8) }
            + examples.map { try Files.read(folder.appending($0)) }
    }

    @Test("any input gives valid settings, or errors with a place in the file and a remedy")
    func loader() throws {
        let mutator = Mutator(try Self.seeds(), words: Self.words)
        var (taken, refused) = (0, 0)
        let fuzz = Fuzz("configuration", rounds: 1200)
        try fuzz.each(mutator) { round in
            var files = [(file: FilePath("a.yaml"), bytes: round.input)]
            // Sometimes config.d contains the other half.
            if Int.random(in: 0..<8, using: &round.dice) == 0 {
                files.append((FilePath("config.d/1.yaml"), mutator.text(&round.dice)))
            }
            switch Self.read(files) {
            case .success(let loaded):
                taken += 1
                try Self.check(loaded, round)
                let shown = EffectiveConfiguration(loaded).yaml
                if files.allSatisfy({ Self.isSecretWhereItStands($0.bytes) }) {
                    try round.expect(!occurs(Self.canary, in: shown), "the message shows the secret:\n\(shown)")
                }
                try round.expect(
                    shown.split(separator: "\n").allSatisfy { printable(String($0)) == $0 },
                    "the message has control characters:\n\(shown)")
                try Self.check(loaded.warnings, files, round)
            case .failure(let error):
                refused += 1
                try round.expect(!error.problems.isEmpty, "the refusal has no message")
                try Self.check(error.problems, files, round)
            }
        }
        if fuzz.rounds > 1000 {
            #expect(taken > fuzz.rounds / 50, "too few inputs are accepted to check accepted ones")
            #expect(refused > fuzz.rounds / 10)
        }
    }

    private static func read(_ files: [(file: FilePath, bytes: [UInt8])]) -> Result<LoadedSettings, ConfigErrors> {
        Result { () throws(ConfigErrors) in try Settings.read(files, types: types, disk: .unchecked) { _ in nil } }
    }

    /// A message names an existing place, is long enough, and shows no secret.
    private static func check(
        _ problems: [ConfigProblem], _ files: [(file: FilePath, bytes: [UInt8])], _ round: Fuzz.Round
    ) throws {
        // In another place the canary is ordinary text, which the person has to see.
        let hidesSecret = files.allSatisfy { isSecretWhereItStands($0.bytes) }
        for problem in problems {
            if hidesSecret {
                try round.expect(!occurs(canary, in: problem.description), "the message shows the secret: \(problem)")
            }
            let shown = problem.key + problem.text
            try round.expect(printable(shown) == shown, "the message has control characters: \(printable(shown))")
            try round.expect(problem.text.split(separator: " ").count > 2, "the message is too short: \(problem)")
            guard let file = files.first(where: { $0.file == problem.file }) else {
                throw round.flaw("is about no file of these: \(problem)")
            }
            guard let line = problem.line, let column = problem.column else {
                // Only a message about the whole file has no place.
                let whole = ["is not UTF-8", "is empty; a configuration", "is larger"]
                try round.expect(
                    whole.contains { problem.text.hasPrefix($0) }, "the message names no place: \(problem)")
                continue
            }
            let lines = lines(of: file.bytes)
            try round.expect(
                lines.indices.contains(line - 1), "the file has no line \(line) of \(lines.count): \(problem)")
            try round.expect(
                (1...(lines[line - 1] + 1)).contains(column), "the line has no column \(column): \(problem)")
            try round.expect(problem.excerpt != nil, "the message has no excerpt: \(problem)")
        }
    }

    /// Scalars of each line; with all line breaks of YAML 1.1 (section 5.4), without a byte order mark at the start.
    private static func lines(of bytes: [UInt8]) -> [Int] {
        var counts = [0]
        var last: Unicode.Scalar = " "
        for (index, scalar) in String(decoding: bytes, as: UTF8.self).unicodeScalars.enumerated() {
            switch scalar {
            case "\u{FEFF}" where index == 0: break
            case "\n" where last == "\r": break
            case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": counts.append(0)
            default: counts[counts.count - 1] += 1
            }
            last = scalar
        }
        return counts
    }

    private static func isSecretWhereItStands(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard occurs(canary, in: text) else { return true }
        return !occurs(canary, in: text.replacing("    token:\n      literal: \"\(canary)\"", with: ""))
    }

    /// Properties that every module relies on without checking again.
    private static func check(_ loaded: LoadedSettings, _ round: Fuzz.Round) throws {
        let settings = loaded.settings
        func absolute(_ path: FilePath, _ what: String) throws {
            try round.expect(
                path.isAbsolute && path == path.normalised && !path.components.contains("..")
                    && path.bytes.count < 4096,
                "\(what) is \(path)")
        }
        try absolute(settings.state, "state")
        try absolute(settings.staging.path, "staging")
        try absolute(settings.control.socket, "socket")
        try round.expect(
            settings.control.socket.bytes.count <= 107, "the socket's path is too long: \(settings.control.socket)")
        try round.expect(settings.staging.keepFree >= 0 && settings.staging.maxSize ?? 0 >= 0, "an amount is negative")
        try round.expect((1...64).contains(settings.policy.total), "\(settings.policy.total) uploads at once")
        try round.expect(
            (1...64).contains(settings.policy.perDestination),
            "\(settings.policy.perDestination) uploads for each destination")
        for path in [settings.metrics.textfile, settings.metrics.statusFile].compactMap({ $0 }) {
            try absolute(path, "a file of metrics")
        }
        try round.expect(
            settings.metrics.every >= .seconds(5) && settings.metrics.every <= .seconds(3600),
            "the interval of metrics is outside its limits")
        try retry(settings.policy.retry, round)
        let names = settings.destinations.map(\.name)
        try round.expect(Set(names).count == names.count, "two destinations have one name")
        try round.expect(
            Set(settings.folders.map(\.watch.name)).count == settings.folders.count, "two folders have one name")
        for destination in settings.destinations {
            let type = try #require(types.first { $0.name == destination.type })
            let keys = type.keys.filter(\.isRequired).map(\.name)
            try round.expect(keys.allSatisfy { destination.values[$0] != nil }, "\(destination.name) lacks a key")
            if let own = destination.policy.retry { try retry(own, round) }
        }
        for folder in settings.folders {
            try absolute(folder.watch.path, "folder")
            try round.expect(!folder.uploadTo.isEmpty, "\(folder.watch.name) has no destination")
            try round.expect(
                Set(folder.uploadTo).isSubset(of: names), "\(folder.watch.name) names an unknown destination")
            try round.expect(
                settings.staging.path.relative(to: folder.watch.path) == nil
                    && settings.staging.path != folder.watch.path,
                "the staging folder is watched")
            if case .move(let to) = folder.afterUpload {
                try round.expect(to.source.hasPrefix("/"), "the target is relative: \(to.source)")
            }
            if let own = folder.policy.retry { try retry(own, round) }
            for glob in folder.watch.include + folder.watch.exclude { _ = Glob(glob).matches("a/b.mp4") }
        }
        let text = EffectiveConfiguration(loaded, hides: false).yaml
        switch read([("a.yaml", Array(text.utf8))]) {
        case .success(let again):
            try round.expect(
                placeless(again.settings) == placeless(settings), "the printed form has another meaning:\n\(text)")
        case .failure(let error): throw round.flaw("written out it is refused: \(error)\n\(text)")
        }
    }

    private static func retry(_ backoff: Backoff, _ round: Fuzz.Round) throws {
        try round.expect(backoff.first > .zero && backoff.first <= backoff.ceiling, "the wait is invalid: \(backoff)")
        try round.expect(backoff.attempts ?? 1 > 0, "\(backoff)")
    }

    private static func placeless(_ settings: Settings) -> Settings {
        var settings = settings
        for index in settings.destinations.indices { settings.destinations[index].place = "" }
        return settings
    }

    @Test("an amount of bytes or time means the same when written out, and never overflows")
    func amounts() throws {
        let seeds = [
            "200 GB", "1.5 TiB", "0", "8MiB", "999999999999999.999 kB", "999999999999999.999KiB", "90s",
            "1d2h30m5s500ms", "1h 30m", "0.001 s",
        ]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) },
            words: [
                "B", "kB", "KiB", "TiB", "d", "h", "m", "s", "ms", " ", ".", ".5", "-", "µs", "/s", "e9", "\u{301}",
            ],
            limit: 64)
        try Fuzz("amounts", rounds: 2000).each(mutator) { round in
            guard let text = String(validating: round.input, as: UTF8.self) else { return }
            if let bytes = try Self.read(text, .bytes, round) {
                let again = try Self.read(writtenBytes(bytes), .bytes, round)
                try round.expect(bytes >= 0 && again == bytes, "\(bytes) is printed as \(writtenBytes(bytes))")
            }
            let reader = Reader.duration(.zero ... .seconds(86_400 * 36_500))
            if let time = try Self.read(text, reader, round) {
                let again = try Self.read(writtenTime(time), reader, round)
                try round.expect(again == time, "\(time) is printed as \(writtenTime(time))")
            }
        }
    }

    private static func read<Value>(_ text: String, _ reader: Reader<Value>, _ round: Fuzz.Round) throws -> Value? {
        do throws(ValueError) { return try reader.read(text) } catch {
            let length = text.unicodeScalars.count
            guard (0...length).contains(error.offset) else { throw round.flaw("no place \(error.offset) in it") }
            return nil
        }
    }
}
