import Core
import FoundationEssentials
import Linux
import TestKit

/// A recipe of `config/recipes` in a test: its own text, with the few replacements that the test lists.
extension DaemonFixture {
    /// Runs the daemon with a recipe. The lists of replacements are the whole difference to the file that a user
    /// copies: state and staging folders of the test and its socket, and what the test names.
    ///
    /// - Parameters:
    ///   - name: `lte-camera`.
    ///   - replacements: Texts of the recipe, and what stands in their place.
    /// - Throws: ``Adaptation/Missing`` if the recipe has no such text any more.
    func use(recipe name: String, replacing replacements: [(String, String)]) throws {
        let file = Repository.root.appending("config/recipes").appending(FilePath("\(name).yaml"))
        let own = """
            version: 1
            state: \(state.display)
            staging: {path: \(staging.display), memory: allow}
            control: {socket: \(socket.display)}

            """
        let text = String(decoding: try Files.read(file), as: UTF8.self)
        wholeConfiguration = try Adaptation.of(
            Adaptation.of(text, replacing: replacements), replacing: [("version: 1\n", own)])
    }

    /// The first answer of `sluice why` for a file.
    func why(_ path: FilePath) async throws -> Why.Answer? {
        guard let text = try await runVerb("why", ["--json", path.display]) else { return nil }
        return try JSONDecoder().decode(Why.self, from: Data(text.utf8)).answers.first
    }

    /// Waits until a file has a hold of this kind.
    @discardableResult
    func holds(_ path: FilePath, for kind: String) async throws -> Why.Hold {
        try await eventually("\(path.name) has a hold of the kind \(kind); \(lastWords())") {
            try await why(path)?.holds.first { $0.kind == kind }
        }
    }

    /// Waits until the daemon watches its folders: a file that is written from then on settles a second after its end,
    /// and one that was there before after half a minute.
    func watches() async throws {
        try await eventually("the daemon has started; \(lastWords())") { try await status()?.starting == false }
    }

    /// Waits until this many uploads are complete, and none is ongoing or failed.
    func completes(_ count: Int, within limit: Duration = .seconds(60)) async throws {
        try await eventually("\(count) uploads are complete; \(lastWords())", within: limit, every: .milliseconds(50)) {
            try daemon?.requireRunning()
            return try await status()?.counts
                == Status.Counts(ongoing: 0, completed: count, failed: 0, cancelled: 0)
        }
    }

    /// Bytes that the daemon has counted as sent today.
    func sentToday() async throws -> Int64 {
        struct Usage: Decodable {
            struct Period: Decodable { let bytes: Int64 }
            let days: [Period]
        }
        let text = try await eventually("the daemon reports what it sent") { try await runVerb("usage", ["--json"]) }
        return try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).days.last?.bytes ?? 0
    }

    struct Why: Decodable {
        struct Hold: Decodable { var kind, text: String }
        struct Answer: Decodable {
            var state: String
            var holds: [Hold]
        }
        var answers: [Answer]
    }
}

/// Replacements in a text that users copy: a recipe, or a block of its page.
enum Adaptation {
    struct Missing: Error, CustomStringConvertible {
        let wanted: String
        let text: String
        var description: String { "no `\(wanted)` is to be replaced in:\n\(text)" }
    }

    /// - Throws: ``Missing`` if a text is not there: then the test does not test what it says.
    static func of(_ text: String, replacing replacements: [(String, String)]) throws -> String {
        var text = text
        for (old, new) in replacements {
            guard occurs(old, in: text) else { throw Missing(wanted: old, text: text) }
            text = text.replacing(old, with: new)
        }
        return text
    }
}

/// A time zone in which the clock shows a certain time at this moment, so that a test runs at night at any hour.
enum NightZone {
    /// - Returns: For the variable `TZ` (tzset(3)): seconds west of Greenwich.
    static func showing(_ hour: Int, _ minute: Int, _ second: Int) -> String {
        let now = Int(SystemClocks().wall().milliseconds / 1000 % 86_400)
        // Less than a day to either side.
        let west = now - (hour * 3600 + minute * 60 + second)
        let size = abs(west)
        return "<TST>\(west < 0 ? "-" : "")\(size / 3600):\(size / 60 % 60):\(size % 60)"
    }
}

/// Writes a file as a camera does, without a rename: the end of the writing is the kernel's event of a close.
func record(_ content: [UInt8], at path: FilePath) throws {
    try Files.makeFolders(path.parent)
    let file = try Descriptor.open(path, for: .creating)
    try file.write(content, named: path)
    // A disk that is shut down loses data that was not synced.
    try file.sync(named: path)
    try file.close(named: path)
}

/// A recording of `Tests/Fixtures/media`.
func recording(_ name: String) throws -> [UInt8] {
    try Files.read(Repository.root.appending("Tests/Fixtures/media").appending(FilePath(name)), limit: 1 << 20)
}
