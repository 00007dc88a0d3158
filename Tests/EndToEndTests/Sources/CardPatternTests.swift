import Core
import Glibc
import Linux
import TestKit
import Testing

/// A folder whose path stands for one folder on each card.
@Suite(
    "Cards by a pattern, with the built program", .serialized,
    .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value },
    .timeLimit(.minutes(Patience.minutes(4))))
struct CardPatternTests {
    /// Two mount points as they are made for a user, and a daemon with a pattern for them.
    private struct Reader {
        let fixture: DaemonFixture
        let media: FilePath
        var first: FilePath { media.appending("anna/EOS") }
        var second: FilePath { media.appending("anna/EOS1") }

        init() throws {
            let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            let media = fixture.folder.path.appending("media")
            try Files.makeFolders(media)
            self.media = media
            self.fixture = fixture
            fixture.wholeConfiguration = """
                version: 1
                state: \(fixture.state.display)
                staging: {path: \(fixture.staging.display), memory: allow, keep_free: 0}
                control: {socket: \(fixture.socket.display)}
                folders:
                  - name: card
                    path: "\(media.display)/*/*/DCIM"
                    require: {mount: "\(media.display)/*/*"}
                    settle: {quiet_for: 200ms}
                    removable: always
                    upload_to: [archive]
                destinations:
                  archive: {type: directory, path: \(fixture.archive.display), mount: /}
                """
        }

        func status(says words: String) async throws {
            try await eventually("`status` contains: \(words); \(fixture.lastWords())", within: .seconds(40)) {
                try await fixture.runVerb("status")?.contains(words) == true
            }
        }

        /// Whether files may be copied.
        func setStaging(isOpen: Bool) throws {
            let keys = ["keep_free: 0}", "keep_free: 900 TB}"]
            fixture.wholeConfiguration = fixture.wholeConfiguration?.replacing(
                keys[isOpen ? 1 : 0], with: keys[isOpen ? 0 : 1])
            try fixture.writeConfiguration()
        }

        func arrived() throws -> Set<FilePath> { Set(try Outcome.files(in: fixture.archive, hidden: true)) }
    }

    /// A card whose files are distinct from those of other cards.
    private func card(at place: FilePath, _ names: [FilePath], seed: Int) async throws -> LoopDisk {
        // Where udev makes a link for the label, it gives the same name as the mount point.
        let card = try await LoopDisk(.ext4, at: place, label: place.name.display)
        for (index, name) in names.enumerated() {
            try record(noise(50_000 + 1000 * seed + index), at: place.appending("DCIM").appending(name))
        }
        return card
    }

    @Test("cards that swap their mount points keep their folders: no file is sent twice, and none to another folder")
    func swapped() async throws {
        let reader = try Reader()
        let one = try await card(at: reader.first, ["a.mp4", "b.mp4"], seed: 1)
        try await one.unmount()
        try reader.fixture.startDaemon()
        try await reader.status(says: "no file system is mounted at \(reader.media.display)/*/*")
        try await one.mount()
        try await reader.fixture.completes(2)
        for name in ["card", "card-EOS"] {
            for more in [[], ["--running"]] {
                let found = try await reader.fixture.runVerb("check", ["--folder", name] + more)
                #expect(found?.contains("card-EOS") == true, "check \(more) of \(name)")
            }
        }
        let two = try await card(at: reader.second, ["a.mp4"], seed: 2)
        try await reader.fixture.completes(3)
        let expected: Set<FilePath> = ["card-EOS/a.mp4", "card-EOS/b.mp4", "card-EOS1/a.mp4"]
        #expect(try reader.arrived() == expected)
        try await one.unmount()
        try await two.unmount()
        try await two.mount(at: reader.first)
        try await one.mount(at: reader.second)
        // A new file on each is proof that both were scanned at their new places.
        try record(noise(70_001), at: one.path.appending("DCIM/c.mp4"))
        try record(noise(70_002), at: two.path.appending("DCIM/b.mp4"))
        try await reader.fixture.completes(5)
        #expect(try reader.arrived() == expected.union(["card-EOS/c.mp4", "card-EOS1/b.mp4"]))
        #expect(try Files.read(reader.fixture.archive.appending("card-EOS/c.mp4")) == noise(70_001))
        // The names are remembered over a restart, whichever card comes first.
        try await one.unmount()
        try await two.unmount()
        #expect(try await reader.fixture.stopDaemon() == .status(0))
        try await two.mount(at: reader.second)
        try reader.fixture.startDaemon()
        try await reader.status(says: "card-EOS1  \(reader.second.display)/DCIM  watching")
        try await one.mount(at: reader.first)
        try record(noise(70_003), at: one.path.appending("DCIM/d.mp4"))
        try await reader.fixture.completes(6)
        #expect(try reader.arrived() == expected.union(["card-EOS/c.mp4", "card-EOS1/b.mp4", "card-EOS/d.mp4"]))
        #expect(try await reader.fixture.stopDaemon() == .status(0))
    }

    @Test(
        "files that wait for a card are read from it at its next mount point, and never from another card at the old one"
    )
    func waiting() async throws {
        let reader = try Reader()
        // Nothing fits into the staging folder at first.
        try reader.setStaging(isOpen: false)
        let names: [FilePath] = ["a.mp4", "b.mp4"]
        let one = try await card(at: reader.first, names, seed: 1)
        try reader.fixture.startDaemon()
        try await eventually("both files are found and wait") {
            try await reader.fixture.status()?.counts.ongoing == 2
        }
        try await one.unmount()
        let two = try await card(at: reader.first, [], seed: 2)
        // The names of the first card's files, with other bytes of the same size and time.
        for (index, name) in names.enumerated() {
            try record(noise(51_000 + index, seed: 2), at: two.path.appending("DCIM").appending(name))
        }
        try await eventually("the second card's files are found and wait") {
            try await reader.fixture.status()?.counts.ongoing == 4
        }
        try reader.setStaging(isOpen: true)
        #expect(try await reader.fixture.runVerb("reload") != nil)
        // The first card's files wait for it.
        try await eventually("the second card's files have arrived; \(reader.fixture.lastWords())") {
            try await reader.fixture.status()?.counts.completed == 2
        }
        let early = try reader.arrived()
        #expect(early.count == 2 && early.allSatisfy { $0.components.first != "card-EOS" }, "\(early)")
        try await one.mount(at: reader.second)
        try await reader.fixture.completes(4)
        let arrived = try reader.arrived()
        #expect(arrived == early.union(["card-EOS/a.mp4", "card-EOS/b.mp4"]))
        for (index, name) in names.enumerated() {
            let (own, others) = (
                arrived.filter { $0.name == name && !early.contains($0) }, early.filter { $0.name == name }
            )
            #expect(try own.map { try Files.read(reader.fixture.archive.appending($0)) } == [noise(51_000 + index)])
            #expect(
                try others.map { try Files.read(reader.fixture.archive.appending($0)) } == [
                    noise(51_000 + index, seed: 2)
                ])
        }
        #expect(try await reader.fixture.stopDaemon() == .status(0))
    }

    @Test("a refused reload gives no card a name")
    func refused() async throws {
        let reader = try Reader()
        let one = try await card(at: reader.first, ["a.mp4"], seed: 1)
        try reader.fixture.startDaemon()
        try await reader.fixture.completes(1)
        let right = reader.fixture.wholeConfiguration
        reader.fixture.wholeConfiguration = right?.replacing("name: card", with: "name: other").replacing(
            reader.fixture.socket.display, with: reader.fixture.socket.display + "2")
        try reader.fixture.writeConfiguration()
        let socket = ["--socket", reader.fixture.socket.display]
        #expect(try await reader.fixture.runVerb("reload", socket) == nil)
        #expect(one.path == reader.first)
        #expect(try await reader.fixture.stopDaemon() == .status(0))
        #expect(try Ledger.cards(of: reader.fixture.state) == ["card-EOS"])
    }

    @Test("a run without a card is done, and names the folder that has none")
    func withoutCard() async throws {
        let reader = try Reader()
        try reader.fixture.writeConfiguration()
        let run = try await reader.fixture.verb("run", ["--once", "--json"])
        #expect(run.status == 0, "\(run)")
        #expect(run.printed.contains(#""without_card":["card"]"#), "\(run)")
    }
}
