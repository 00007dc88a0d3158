import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// `config/recipes/memory-card.yaml` and its page: cards with a label, and a mounted NAS.
@Suite(
    "Recipe of memory cards", .serialized, .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value },
    .timeLimit(.minutes(Patience.minutes(4))))
struct MemoryCardTests {
    /// The label that the rule of the package looks for.
    private static let label = "CAMERA"

    /// A card in its reader, a NAS, and a daemon with the recipe.
    private struct Reader {
        let fixture: DaemonFixture
        let card: LoopDisk
        let nas: LoopDisk
        var archive: FilePath { nas.path.appending("archive") }
        var pictures: FilePath { card.path.appending("DCIM") }

        init(_ kind: LoopDisk.Kind) async throws {
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            card = try await LoopDisk(kind, label: MemoryCardTests.label)
            nas = try await LoopDisk(.ext4)
            try Files.makeFolders(archive)
            try fixture.use(
                recipe: "memory-card",
                replacing: [("/media/camera", card.path.display), ("/mnt/nas", nas.path.display)])
        }

        /// The command of the page: `sudo touch /mnt/nas/archive/.sluice-target`.
        func makeMarker() throws {
            #expect(try Page("docs/recipes/memory-card.md").text.contains("touch /mnt/nas/archive/.sluice-target"))
            try Files.replace(archive.appending(".sluice-target"), with: [])
        }

        func status(says words: String) async throws {
            try await eventually("`status` contains: \(words); \(fixture.lastWords())", within: .seconds(40)) {
                try await fixture.runVerb("status")?.contains(words) == true
            }
        }

        /// The files in the archive, without its marker.
        func arrived() throws -> Set<FilePath> {
            Set(try Outcome.files(in: archive, hidden: true).filter { $0.name != ".sluice-target" })
        }

        /// The events of all uploads so far, in their order: `verified` as `1.mp4`, and levels of the card.
        func events() async throws -> [Event] {
            let output = fixture.folder.path.appending("events")
            let reader = try Child(
                fixture.binary, ["events", "--since", "0", "--json", "--config", fixture.config.display],
                output: output, errors: fixture.folder.path.appending("events.err"))
            defer { reader.end(with: SIGTERM) }
            return try await eventually("the events contain the last level", within: .seconds(20)) {
                let lines = try reader.standardOutput().split(separator: "\n", omittingEmptySubsequences: false)
                    .dropLast()
                let events = try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
                return events.contains { $0.detail["level"] == "verified" } ? events : nil
            }
        }
    }

    private struct Event: Decodable {
        struct Upload: Decodable { var name: String }
        var type: String
        var op: Upload?
        var detail: [String: String]
    }

    @Test("the label of the package's rule is the one that the page names")
    func rule() throws {
        let page = try Page("docs/recipes/memory-card.md").text
        let rule = try Page("packaging/card/80-camera-card.rules").text
        #expect(page.contains("the label `\(Self.label)`"))
        #expect(rule.contains("ENV{ID_FS_LABEL}==\"\(Self.label)\""))
        let service = try Page("packaging/card/camera-card@.service").text
        #expect(service.contains(" /dev/%i /media/camera\n"))
    }

    @Test(
        "without its marker the NAS gets nothing, a card may go when all is staged, and is verified after each file is")
    func inserted() async throws {
        let reader = try await Reader(.ext4)
        let fixture = reader.fixture
        let files = [
            "100MEDIA/DSC0001.MP4": "whole/plain.mp4", "100MEDIA/DSC0002.mov": "whole/camera.mov",
            "101MEDIA/DSC0003.jpg": "whole/camera.jpg",
        ]
        for (name, source) in files { try record(recording(source), at: reader.pictures.appending(FilePath(name))) }
        try record([1], at: reader.pictures.appending("100MEDIA/index.xml"))
        // The daemon starts without a card, and concludes nothing from that.
        try await reader.card.unmount()
        try fixture.startDaemon()
        try await reader.status(says: "absent")
        try await reader.card.mount()
        try await reader.status(says: "safe to remove: every file is staged; 3 uploads continue without it")
        try await eventually("the log says so too") {
            try fixture.daemon?.standardError().contains("safe to remove: every file on it is staged")
        }
        #expect(try Outcome.files(in: reader.archive, hidden: true).isEmpty)
        try await reader.card.unmount()
        try await reader.status(says: "absent")
        try reader.makeMarker()
        try await fixture.completes(3)
        // Dates of the recordings themselves, in the time zone of the machine.
        let expected = Set(files.keys.map { FilePath("2024-05-01/\($0)") })
        #expect(try reader.arrived() == expected)
        for (name, source) in files {
            let arrived = reader.archive.appending(FilePath("2024-05-01/\(name)"))
            #expect(try Files.read(arrived) == recording(source), "\(name)")
        }
        try await reader.card.mount()
        try await reader.status(says: "safe to remove: every file is verified")
        let events = try await reader.events()
        let level = try #require(events.firstIndex { $0.detail["level"] == "verified" })
        let verified = events[..<level].filter { $0.type == "completed" }.compactMap { $0.op?.name }
        #expect(Set(verified).count == 3 && verified.count == 3, "\(verified)")
        #expect(events[..<level].contains { $0.detail["level"] == "staged" })
        // Whatever the camera does with its card, the same files are not sent again.
        for _ in 0..<2 {
            try await reader.card.unmount()
            try await reader.status(says: "absent")
            try await reader.card.mount()
            try await reader.status(says: "safe to remove: every file is verified")
        }
        try await fixture.completes(3)
        #expect(try reader.arrived() == expected)
        #expect(try Outcome.files(in: reader.pictures, hidden: true).count == 4)
        // The camera was formatted, and counts from the beginning: another picture has the name of the first one.
        let picture = reader.pictures.appending("101MEDIA/DSC0003.jpg")
        try Files.removeIfPresent(picture)
        try record(recording("whole/local.jpg"), at: picture)
        try await fixture.completes(4)
        let second: FilePath = "2024-05-01/101MEDIA/DSC0003 (2).jpg"
        #expect(try reader.arrived() == expected.union([second]))
        #expect(try Files.read(reader.archive.appending(second)) == recording("whole/local.jpg"))
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "a card pulled out in the middle and put in again loses nothing, and no file is sent twice")
    func pulled() async throws {
        let reader = try await Reader(.xfs)
        let fixture = reader.fixture
        try reader.makeMarker()
        let clips = (1...200).map { number in
            Clip(number: number, size: 200_000 + number, relative: FilePath("100MEDIA/DSC\(number).mp4"))
        }
        for clip in clips { try record(clip.content, at: reader.pictures.appending(clip.relative)) }
        for folder in [reader.pictures.appending("100MEDIA"), reader.pictures, reader.card.path] {
            try Files.syncFolder(folder)
        }
        try fixture.startDaemon()
        // They settle half a minute after they are found.
        try await eventually(
            "some files have arrived; \(fixture.lastWords())", within: .seconds(60), every: .milliseconds(2)
        ) {
            try reader.arrived().count > 5
        }
        try await reader.card.shutDown()
        try await reader.card.unmount()
        try await reader.status(says: "absent")
        try await eventually("all staged files have been uploaded", within: .seconds(60)) {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        let early = try reader.arrived().count
        #expect(early < clips.count, "the card was pulled out too late for this test")
        let lines = try #require(fixture.daemon).standardError()
        #expect(!lines.contains("every file on it is verified"), "\(lines.suffix(3000))")
        try await reader.card.mount()
        try await fixture.completes(clips.count)
        try await reader.status(says: "safe to remove: every file is verified")
        let arrived = try reader.arrived()
        #expect(arrived.count == clips.count)
        for clip in clips {
            let names = arrived.filter { $0.name == clip.relative.name }
            let name = try #require(names.first, "\(clip.relative)")
            #expect(try names.count == 1 && Files.read(reader.archive.appending(name)) == clip.content)
        }
        #expect(try Outcome.files(in: reader.pictures, hidden: true).count == clips.count)
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
