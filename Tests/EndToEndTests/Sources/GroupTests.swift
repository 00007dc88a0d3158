import Core
import Glibc
import Linux
import TestKit
import Testing

/// Videos with their sidecars, from the built program.
@Suite("Groups of files", .timeLimit(.minutes(Patience.minutes(3))))
struct GroupTests {
    private func fixture(_ keys: String = "wait: 500ms") throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.folderKeys = ["include: [\"*.mp4\"]", "group: {by: stem, \(keys)}"]
        return fixture
    }

    private func drop(_ name: String, _ fixture: DaemonFixture, size: Int = 20_000) throws {
        try fixture.folder.write(FilePath("beside/\(name)"), noise(size, seed: UInt64(name.utf8.count)))
        try Files.rename(
            fixture.folder.path.appending(FilePath("beside/\(name)")), to: fixture.drop.appending(FilePath(name)))
    }

    private func received(_ fixture: DaemonFixture) throws -> Set<String> {
        Set(try Outcome.files(in: fixture.received, hidden: false).map(\.display))
    }

    private func left(_ fixture: DaemonFixture) throws -> Set<String> {
        Set(try Outcome.files(in: fixture.drop, hidden: true).map(\.display))
    }

    @Test("a video and its sidecars are uploaded together; a sidecar without a video waits and names it")
    func together() async throws {
        let fixture = try fixture()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop("lone.xml", fixture)
        for name in ["clip.srt", "clip.mp4", "clip.XML"] { try drop(name, fixture) }
        try await eventually("the files of the clip have been released", within: .seconds(30)) {
            try left(fixture) == ["lone.xml"]
        }
        #expect(try received(fixture) == ["clip.srt", "clip.mp4", "clip.XML"])
        try await eventually(
            "`status` says that the sidecar waits for its video", within: .seconds(20), every: .milliseconds(100)
        ) {
            try await fixture.runVerb("status", [])?.contains("a sidecar file that waits for its lone.*") == true
        }
        try drop("lone.mp4", fixture)
        try await eventually("the sidecar and its video have been released", within: .seconds(30)) {
            try left(fixture).isEmpty
        }
        #expect(try received(fixture).count == 5)
    }

    @Test("a group waits for a sidecar that is still being written")
    func written() async throws {
        let fixture = try fixture()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let path = fixture.drop.appending("clip.srt")
        let subtitles = try Descriptor.open(path, for: .creating)
        try subtitles.write(noise(1000), named: path)
        try drop("clip.mp4", fixture)
        try await eventually(
            "`status` says that the video waits for its subtitles", within: .seconds(20), every: .milliseconds(100)
        ) {
            try await fixture.runVerb("status", [])?.contains("waits for clip.srt, which has not settled") == true
        }
        #expect(try received(fixture).isEmpty)
        try subtitles.close(named: path)
        try await eventually("both sources have been released", within: .seconds(30)) { try left(fixture).isEmpty }
        #expect(try received(fixture) == ["clip.srt", "clip.mp4"])
    }

    @Test("no source of a group is released before all of it is verified, including a late sidecar")
    func released() async throws {
        let fixture = try fixture()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon has paused", within: .seconds(20), every: .milliseconds(100)) {
            try await fixture.runVerb("pause", ["--all"]) != nil
        }
        for name in ["clip.mp4", "clip.xml"] { try drop(name, fixture) }
        func ids(_ name: String) async throws -> [String] {
            guard let text = try await fixture.runVerb("list", ["--text", name, "--json"]) else { return [] }
            return text.matches(of: /"id":"([0-9A-Z]{26})"/).map { String($0.1) }
        }
        try await eventually("both files have uploads", within: .seconds(20), every: .milliseconds(100)) {
            try await ids("clip.").count == 2
        }
        let sidecar = try #require(await ids("clip.xml").first)
        _ = try #require(await fixture.runVerb("pause", [sidecar]))
        _ = try #require(await fixture.runVerb("resume", ["--all"]))
        try await eventually("the video has been received", within: .seconds(20)) {
            try received(fixture) == ["clip.mp4"]
        }
        try await eventually("the video is verified", within: .seconds(20), every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":1,") == true
        }
        try drop("clip.srt", fixture)
        try await eventually("the late sidecar has been received", within: .seconds(20)) {
            try received(fixture).count == 2
        }
        try await eventually("the late sidecar is verified", within: .seconds(20), every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":2,") == true
        }
        #expect(try left(fixture) == ["clip.mp4", "clip.xml", "clip.srt"])
        fixture.killDaemon()
        try fixture.startDaemon()
        try await eventually("the daemon has resumed the sidecar", within: .seconds(20), every: .milliseconds(100)) {
            try await fixture.runVerb("resume", [sidecar]) != nil
        }
        try await eventually("all sources have been released", within: .seconds(30)) { try left(fixture).isEmpty }
        #expect(try received(fixture).count == 3)
    }

    @Test("an empty video starts no group: its sidecar waits until it has content, and then they are uploaded together")
    func emptyVideo() async throws {
        let fixture = try fixture("wait: 200ms")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop("clip.mp4", fixture, size: 0)
        try drop("clip.xml", fixture)
        try await eventually("the sidecar waits for its video", every: .milliseconds(100)) {
            try await fixture.runVerb("status", [])?.contains("waits for its clip.*") == true
        }
        #expect(try received(fixture).isEmpty)
        let path = fixture.drop.appending("clip.mp4")
        let video = try Descriptor.open(path, for: .updating)
        try video.write(noise(1000), named: path)
        try video.close(named: path)
        try await eventually("both sources have been released") { try left(fixture).isEmpty }
        #expect(try received(fixture) == ["clip.mp4", "clip.xml"])
    }

    @Test("a sidecar that arrives after the release of its video follows it; a deleted one is dropped")
    func late() async throws {
        let fixture = try fixture("wait: 200ms")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop("clip.mp4", fixture)
        try await eventually("the video has been received and released") {
            try left(fixture).isEmpty && received(fixture) == ["clip.mp4"]
        }
        try drop("clip.srt", fixture)
        try await eventually("the late sidecar has been received and released") {
            try left(fixture).isEmpty && received(fixture).count == 2
        }
        try drop("lone.xml", fixture)
        try await eventually("the sidecar waits", every: .milliseconds(100)) {
            try await fixture.runVerb("status", [])?.contains("lone.xml") == true
        }
        try Files.remove(fixture.drop.appending("lone.xml"))
        try await eventually(
            "`status` no longer shows the deleted sidecar", within: .seconds(60), every: .milliseconds(200)
        ) {
            try await fixture.runVerb("status", [])?.contains("lone.xml") == false
        }
    }

    @Test("a new version of a verified video is not released before the sidecar that still waits")
    func newVersion() async throws {
        let fixture = try fixture("wait: 200ms")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon has paused", every: .milliseconds(100)) {
            try await fixture.runVerb("pause", ["--all"]) != nil
        }
        for name in ["clip.mp4", "clip.xml"] { try drop(name, fixture) }
        let sidecar = try await eventually("the sidecar has an upload", every: .milliseconds(100)) {
            try await fixture.runVerb("list", ["--text", "clip.xml", "--json"])?.firstMatch(of: /"id":"([0-9A-Z]{26})"/)
                .map {
                    String($0.1)
                }
        }
        _ = try #require(await fixture.runVerb("pause", [sidecar]))
        _ = try #require(await fixture.runVerb("resume", ["--all"]))
        try await eventually("the video is verified", every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":1,") == true
        }
        try drop("clip.mp4", fixture, size: 30_000)
        try await eventually("the new version is verified", every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":2,") == true
        }
        // The release has checked the video once it has checked a file that arrived later.
        try drop("other.mp4", fixture)
        try await eventually("the other file has been released") { try left(fixture) == ["clip.mp4", "clip.xml"] }
        _ = try #require(await fixture.runVerb("resume", [sidecar]))
        try await eventually("all sources have been released") { try left(fixture).isEmpty }
    }

    @Test("a rebuild keeps groups and the facts of recordings")
    func rebuilt() async throws {
        let fixture = try fixture()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon has paused", every: .milliseconds(100)) {
            try await fixture.runVerb("pause", ["--all"]) != nil
        }
        let clip = Repository.root.appending("Tests/Fixtures/media/clip.mp4")
        try fixture.folder.write("beside/clip.mp4", try Files.read(clip))
        try Files.rename(fixture.folder.path.appending("beside/clip.mp4"), to: fixture.drop.appending("clip.mp4"))
        try drop("clip.xml", fixture)
        try await eventually("both files are staged", every: .milliseconds(100)) {
            try await fixture.runVerb("list", ["--json"])?.split(separator: "\"sha256\"").count == 3
        }
        let before = try #require(try await fixture.runVerb("show", ["clip.mp4", "--json"]))
        #expect(before.contains("\"duration\""))
        #expect(try await fixture.stopDaemon() == .status(0))
        _ = try #require(try await fixture.runVerb("rebuild", ["--yes", "--force"]))
        try fixture.startDaemon()
        let sidecar = try await eventually("the daemon shows the sidecar", every: .milliseconds(100)) {
            try await fixture.runVerb("show", ["clip.xml", "--json"])?.firstMatch(of: /"id":"([0-9A-Z]{26})"/).map {
                String($0.1)
            }
        }
        #expect(try await fixture.runVerb("show", ["clip.mp4", "--json"])?.contains("\"duration\"") == true)
        _ = try #require(await fixture.runVerb("pause", [sidecar]))
        _ = try #require(await fixture.runVerb("resume", ["--all"]))
        try await eventually("the video is verified", every: .milliseconds(100)) {
            try await fixture.runVerb("status", ["--json"])?.contains("\"completed\":1,") == true
        }
        #expect(try left(fixture) == ["clip.mp4", "clip.xml"])
        _ = try #require(await fixture.runVerb("resume", [sidecar]))
        try await eventually("both sources have been released") { try left(fixture).isEmpty }
        #expect(try received(fixture) == ["clip.mp4", "clip.xml"])
    }

    @Test("a sidecar may contain its video's whole name, and arrive before or after it")
    func wholeName() async throws {
        let fixture = try fixture()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop("first.mp4.json", fixture)
        try await eventually("the sidecar waits for its video", within: .seconds(20), every: .milliseconds(100)) {
            try await fixture.runVerb("status", [])?.contains("waits for its first.mp4.*") == true
        }
        for name in ["first.mp4", "second.mp4", "second.mp4.XML"] { try drop(name, fixture) }
        try await eventually("all sources have been released", within: .seconds(30)) { try left(fixture).isEmpty }
        #expect(try received(fixture) == ["first.mp4", "first.mp4.json", "second.mp4", "second.mp4.XML"])
    }

    @Test("a command exports the video; its sidecar is uploaded unchanged, and both sources are released")
    func exported() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.afterKeys = ", until_free: 1000000 TB"
        fixture.folderKeys = [
            "include: [\"*.mp4\"]", "group: {by: stem, wait: 200ms}",
            "export: {command: [/bin/sh, -c, 'cat \"$0\" \"$0\" > \"$1\"', \"{input}\", \"{output}\"], output: \"{stem}.twice\"}",
        ]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        for name in ["clip.mp4", "clip.xml"] { try drop(name, fixture) }
        try await eventually("both sources have been released", within: .seconds(30)) { try left(fixture).isEmpty }
        #expect(try received(fixture) == ["clip.twice", "clip.xml"])
        let twice = noise(20_000, seed: 8)
        #expect(try Files.read(fixture.received.appending("clip.twice")) == twice + twice)
        #expect(try Files.read(fixture.received.appending("clip.xml")) == twice)
    }

    @Test("a file that its folder excludes does not hold its group for ever")
    func leftOut() async throws {
        let fixture = try fixture("wait: 200ms")
        fixture.folderKeys.append("max_size: 50 kB")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop("clip.json", fixture, size: 60_000)
        try drop("clip.mp4", fixture)
        try await eventually("the video has been released", within: .seconds(120), every: .milliseconds(200)) {
            try left(fixture) == ["clip.json"]
        }
        #expect(try received(fixture) == ["clip.mp4"])
    }

    @Test("a group does not wait for a sidecar that an ignore file excludes")
    func ignored() async throws {
        let fixture = try fixture("wait: 200ms")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending(".sluiceignore"), with: Array("*.json\n!kept.json\n".utf8))
        for name in ["clip.json", "clip.mp4", "kept.json", "kept.mp4"] { try drop(name, fixture) }
        try await eventually("all accepted files have been released", within: .seconds(30), every: .milliseconds(200)) {
            try left(fixture) == [".sluiceignore", "clip.json"]
        }
        #expect(try received(fixture) == ["clip.mp4", "kept.json", "kept.mp4"])
    }

    @Test("a --once run waits for groups, and names sidecars without a video")
    func once() async throws {
        let fixture = try fixture("wait: 1s")
        try await fixture.startReceiver()
        for name in ["clip.mp4", "clip.xml", "lone.srt"] { try drop(name, fixture) }
        try fixture.writeConfiguration()
        let out = fixture.folder.path.appending("once.out"), errors = fixture.folder.path.appending("once.err")
        let child = try Child(
            fixture.binary, ["run", "--once", "--config", fixture.config.display], output: out, errors: errors)
        #expect(try await child.end(within: .seconds(60)) == .status(75))
        #expect(try received(fixture) == ["clip.mp4", "clip.xml"])
        let text = try child.standardOutput() + child.standardError()
        #expect(text.contains("lone.srt"), "\(text)")
    }
}

/// Directories and manifests, from the built program.
@Suite("Groups by directory and manifest", .timeLimit(.minutes(Patience.minutes(3))))
struct GroupKindEndToEndTests {
    private func fixture(_ group: String, keys: [String] = []) async throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.folderKeys = ["group: {\(group)}"] + keys
        try await fixture.startReceiver()
        return fixture
    }

    private func files(_ folder: FilePath) throws -> Set<String> {
        Set(try Outcome.files(in: folder, hidden: false).map(\.display))
    }

    private func drop(_ name: FilePath, _ content: [UInt8], _ fixture: DaemonFixture) throws {
        let path = fixture.drop.appending(name)
        try Files.makeFolders(path.parent)
        try Files.publish(path, content, mode: 0o644)
    }

    @Test("a directory that a program copies file by file goes as one, and is reported as one")
    func directory() async throws {
        let fixture = try await fixture("by: directory, wait: 2s")
        try fixture.startDaemon()
        for number in 0..<20 { try drop(FilePath("card/DCIM/\(number).mp4"), noise(20_000 + number), fixture) }
        let slow = fixture.drop.appending("card/last.mp4")
        let file = try Descriptor.open(slow, for: .creating)
        try file.write(noise(1000), named: slow)
        try await eventually("the directory waits for its last file", every: .milliseconds(100)) {
            try await fixture.runVerb("status", [])?.contains("waits for card/last.mp4, which has not settled") == true
        }
        #expect(try files(fixture.received).isEmpty)
        try file.close(named: slow)
        try await eventually("all sources have been released", within: .seconds(60)) {
            try files(fixture.drop).isEmpty
        }
        #expect(try files(fixture.received).count == 21)
        let shown = try #require(try await fixture.runVerb("show", ["last.mp4"]))
        #expect(shown.contains("card: 21 files, ") && shown.contains("21 verified"), "\(shown)")
        let reader = try Child(
            fixture.binary, ["events", "--since", "0", "--json", "--config", fixture.config.display],
            output: fixture.folder.path.appending("events"), errors: fixture.folder.path.appending("events.err"))
        let report = try await eventually("the group is reported") {
            try reader.standardOutput().split(separator: "\n").first { $0.contains("\"group_ended\"") }
        }
        #expect(report.contains("\"files\":\"21\"") && report.contains("\"result\":\"verified\""), "\(report)")
        reader.end(with: SIGTERM)
    }

    @Test("what a list of checksums names goes with the list, after a restart too, and a rebuild keeps it together")
    func manifest() async throws {
        let fixture = try await fixture("by: manifest, manifest: \"*.sha256\", wait: 200ms")
        try fixture.startDaemon()
        let digest = String(repeating: "ab", count: 32)
        try drop("a/list.sha256", Array("\(digest)  one.mp4\n\(digest) *sub/two.mp4\n".utf8), fixture)
        try drop("a/one.mp4", noise(30_000, seed: 1), fixture)
        try drop("a/none.mp4", noise(30_000, seed: 2), fixture)
        try await eventually("the missing file is named", every: .milliseconds(100)) {
            try await fixture.runVerb("status", [])?.contains(
                "waits for a/sub/two.mp4, which a/list.sha256 lists and which does not exist") == true
        }
        fixture.killDaemon()
        try fixture.startDaemon()
        _ = try await eventually("the daemon has paused", every: .milliseconds(100)) {
            try await fixture.runVerb("pause", ["--all"])
        }
        try drop("a/sub/two.mp4", noise(30_000, seed: 3), fixture)
        try await eventually("three files are staged", every: .milliseconds(100)) {
            try await fixture.runVerb("list", ["--json"])?.split(separator: "\"sha256\"").count == 4
        }
        #expect(try await fixture.stopDaemon() == .status(0))
        _ = try #require(try await fixture.runVerb("rebuild", ["--yes", "--force"]))
        try fixture.startDaemon()
        let shown = try await eventually("the daemon shows the group", every: .milliseconds(100)) {
            try await fixture.runVerb("show", ["two.mp4"])
        }
        #expect(shown.contains("a/list.sha256: 3 files, "), "\(shown)")
        _ = try #require(await fixture.runVerb("resume", ["--all"]))
        try await eventually("the sources of the group have been released", within: .seconds(30)) {
            try files(fixture.drop) == ["a/none.mp4"]
        }
        #expect(try files(fixture.received) == ["a/list.sha256", "a/one.mp4", "a/sub/two.mp4"])
    }
}
