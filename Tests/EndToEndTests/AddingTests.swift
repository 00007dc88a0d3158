import Core
import Foundation
import Linux
import TestKit
import Testing

/// `sluice add`, at the program as a user has it.
@Suite("adding by hand", .timeLimit(.minutes(Patience.minutes(2))))
struct AddingTests {
    /// How a verb ended and what it said.
    private func run(_ fixture: DaemonFixture, _ words: [String]) async throws -> (Child.Ending, String) {
        let name = hexadecimal(Chance.bytes(6))
        let child = try Child(
            fixture.binary, [words[0], "--config", fixture.config.display] + words.dropFirst(),
            output: fixture.folder.path.appending(FilePath("\(name).out")),
            errors: fixture.folder.path.appending(FilePath("\(name).err")))
        let ending = try await child.end(within: .seconds(20))
        return (ending, try child.printed() + child.complained())
    }

    @Test("a folder is added with all below it that its folder takes, once, and in numbers")
    func folders() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // What stands there is left alone, until somebody adds it.
        fixture.folderKeys = ["existing: skip", "include: [\"*.mp4\"]"]
        let old = fixture.drop.appending("old")
        try Files.makeFolders(old.appending("deep/.hidden"))
        try Files.makeFolders(old.appending("left out"))
        try Files.makeFolders(old.appending("words"))
        var wanted: [FilePath: [UInt8]] = [:]
        for number in 0..<450 {
            let name = FilePath(number % 2 == 0 ? "old/\(number).mp4" : "old/deep/\(number).mp4")
            wanted[name] = noise(100 + number, seed: UInt64(number))
            try Files.replace(fixture.drop.appending(name), with: wanted[name] ?? [])
        }
        for name in [
            "old/.dot.mp4", "old/deep/.hidden/x.mp4", "old/words/notes.txt", "old/half.mp4.part", "old/left out/y.mp4",
        ] {
            try Files.replace(fixture.drop.appending(FilePath(name)), with: noise(50))
        }
        try Files.replace(old.appending("empty.mp4"), with: [])
        try Files.replace(fixture.drop.appending("other.mp4"), with: noise(60))
        // A line of the folder above counts below it.
        try Files.replace(fixture.drop.appending(".sluiceignore"), with: Array("left out/\n".utf8))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the folder was looked through", every: .milliseconds(50)) {
            try await fixture.status()?.folders.first?.state == "watching"
        }

        let (ending, said) = try await run(fixture, ["add", old.display])
        #expect(ending == .status(0))
        #expect(said == "added 450 uploads of \(old.display)\n")
        try await eventually("all of it is there", within: .seconds(60), every: .milliseconds(100)) {
            try await fixture.status()?.counts.completed == 450
        }
        let received = try Outcome.files(in: fixture.received, hidden: false)
        #expect(Set(received) == Set(wanted.keys))
        for (name, content) in wanted { #expect(try Files.read(fixture.received.appending(name)) == content) }

        let (twice, words) = try await run(fixture, ["add", old.display])
        #expect(twice == .status(65))
        #expect(
            words.contains("added 0 uploads") && words.contains("450 could not be added, the first because"), "\(words)"
        )
        #expect(words.contains("--again"))
        let (third, json) = try await run(fixture, ["add", old.appending("deep").display, "--again", "--json"])
        #expect(third == .status(0))
        #expect(json.contains("\"count\":225"), "\(json.suffix(300))")
        let (nothing, why) = try await run(fixture, ["add", old.appending("words").display])
        #expect(nothing == .status(66) && why.contains("nothing in"), "\(why)")
        // What of it is known is no obstacle to the rest.
        // Whoever names it wants it, whatever is said of it above.
        let (named, one) = try await run(fixture, ["add", old.appending("left out").display])
        #expect(named == .status(0) && one.hasPrefix("added 1 upload of "), "\(one)")
        let (mixed, both) = try await run(fixture, ["add", fixture.folder.path.display])
        #expect(mixed == .status(0), "\(both)")
        // The other file of the drop folder, and nothing from the folders that are not configured.
        #expect(both.hasPrefix("added 1 upload of ") && both.contains("450 could not be added"), "\(both)")
        let (outside, where_) = try await run(fixture, ["add", fixture.received.display])
        #expect(outside == .status(64) && where_.contains("below none of the configured folders"), "\(where_)")
        let (keyed, reason) = try await run(fixture, ["add", old.display, "--key", "k"])
        #expect(keyed == .status(64) && reason.contains("names one upload"), "\(reason)")
        #expect(try await fixture.stopDaemon()?.ending == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }
}
