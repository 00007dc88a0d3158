import Core
import Glibc
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Groups by manifest", .timeLimit(.minutes(Patience.minutes(2))))
struct ManifestGroupTests {
    private static let rule = GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5"])

    @Test(
        "the files of a manifest are recorded with it when all have settled, in any order of arrival", arguments: 0..<6)
    func manifest(_ order: Int) async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("card/list.md5", "d41d8cd98f00b204e9800998ecf8427e  a.mp4\nsub/b.mp4\n")
        try scene.write("card/a.mp4")
        try scene.write("card/sub/b.mp4")
        let names: [FilePath] = ["card/list.md5", "card/a.mp4", "card/sub/b.mp4"]
        let all = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][order].map { names[$0] }
        try await scene.run {
            for name in all.dropLast() {
                try await scene.settle(name)
                try await scene.waits(name.display, "waits for ")
                #expect(try await scene.names().isEmpty)
            }
            try await scene.settle(all[2])
            try await scene.records(Set(names.map(\.display)))
        }
        let uploads = try await scene.scene.uploads()
        // The manifest is queued last.
        #expect(uploads.values.max { $0.id < $1.id }?.name == "card/list.md5")
        let id = try #require(uploads["card/sub/b.mp4"]?.id)
        let group = try #require(try await scene.scene.store.read { try $0.groups.summary(ofUpload: id) })
        #expect(group.name == "card/list.md5" && group.files == 3)
    }

    @Test("a file that no manifest lists waits for one, and goes when the manifest is corrected")
    func unlisted() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("list.md5", "a.mp4\n")
        try scene.write("a.mp4")
        try scene.write("b.mp4")
        try await scene.run {
            try await scene.settle("list.md5", "a.mp4", "b.mp4")
            try await scene.records(["list.md5", "a.mp4"])
            try await scene.waits("b.mp4", "waits for a manifest that lists it: `group.manifest: [*.md5]`")
            try scene.write("list.md5", "a.mp4\nb.mp4\n")
            try await scene.settle("list.md5")
            try await scene.records(["list.md5", "a.mp4", "b.mp4"])
        }
    }

    @Test("a listed file that does not exist holds the group back, and is named with its manifest")
    func absent() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("x/list.md5", "a.mp4\nb.mp4\n")
        try scene.write("x/a.mp4")
        try await scene.run {
            try await scene.settle("x/list.md5", "x/a.mp4")
            for name in ["x/a.mp4", "x/list.md5"] {
                try await scene.waits(name, "waits for x/b.mp4, which x/list.md5 lists and which does not exist")
            }
            try scene.write("x/b.mp4")
            try await scene.settle("x/b.mp4")
            try await scene.records(["x/list.md5", "x/a.mp4", "x/b.mp4"])
        }
    }

    @Test(
        "a manifest that cannot be used holds its files back, and names the line",
        arguments: [
            ("a.mp4\n../../etc/passwd", "list.md5 line 2 lists `../../etc/passwd`, which is outside the folder"),
            ("a.mp4\n.hidden", "list.md5 line 2 lists .hidden, which the rules of the folder leave out"),
            ("sub/\na.mp4", "list.md5 line 1 lists the directory `sub/`"),
        ])
    func unusable(_ text: String, _ reason: String) async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("list.md5", text)
        try scene.write("a.mp4")
        try await scene.run {
            try await scene.settle("list.md5", "a.mp4")
            try await scene.waits("list.md5", reason)
            #expect(try await scene.names().isEmpty)
            try scene.write("list.md5", "a.mp4")
            try await scene.settle("list.md5")
            try await scene.records(["list.md5", "a.mp4"])
        }
    }

    @Test("a file that a corrected manifest does not list any more waits for another one")
    func takenOut() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("list.md5", "a.mp4\nb.mp4\nc.mp4\n")
        try scene.write("a.mp4")
        try scene.write("b.mp4")
        try await scene.run {
            try await scene.settle("list.md5", "a.mp4", "b.mp4")
            try await scene.waits("a.mp4", "waits for c.mp4")
            try scene.write("list.md5", "b.mp4\n")
            try await scene.settle("list.md5")
            try await scene.records(["list.md5", "b.mp4"])
            try await scene.waits("a.mp4", "waits for a manifest that lists it")
        }
    }

    @Test(
        "a listed name that is no file, and a file that the folder ignores, are told with the reason",
        arguments: [
            ("sub", "which is a directory"), ("link", "which is not a regular file"),
            ("ignored.mp4", "which is excluded by "), ("big.mp4", "which is skipped: "),
        ])
    func neverSettles(_ name: String, _ reason: String) async throws {
        let scene = try await GroupScene(Self.rule, largest: 100)
        try scene.write("list.md5", name)
        try scene.write(".sluiceignore", "ignored.mp4\n")
        try scene.write("sub/x")
        try scene.write("ignored.mp4")
        try scene.write("big.mp4", String(repeating: "x", count: 101))
        let link = scene.scene.folder.path.appending("cam/link")
        #expect(symlink("big.mp4", link.display) == 0)
        try await scene.run {
            try await scene.settle("list.md5")
            try await scene.waits("list.md5", reason)
        }
    }

    @Test("files that no manifest lists do not keep listed ones from going, however many wait")
    func full() async throws {
        let scene = try await GroupScene(Self.rule, most: 2)
        for name: FilePath in ["junk/a", "junk/b", "real/a.mp4"] { try scene.write(name) }
        try scene.write("real/list.md5", "a.mp4\n")
        try await scene.run {
            try await scene.settle("junk/a", "junk/b")
            try await scene.settle("real/a.mp4", "real/list.md5")
            // It was left to a later scan, and is asked for when the manifest needs it.
            try await scene.waits("real/list.md5", "waits for real/a.mp4, which has not settled")
            try await eventually("the listed file is asked for") { scene.asked.all == ["real/a.mp4"] }
            try await scene.settle("real/a.mp4")
            try await scene.records(["real/list.md5", "real/a.mp4"])
        }
        #expect(await scene.reasons().keys.sorted() == ["junk/a", "junk/b"])
    }

    @Test("a list that is wrong does not keep files from going that another one lists")
    func besideWrong() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("a.md5", "../../x\n")
        try scene.write("b.md5", "f.mp4\n")
        try scene.write("f.mp4")
        try await scene.run {
            try await scene.settle("a.md5", "b.md5", "f.mp4")
            try await scene.records(["b.md5", "f.mp4"])
        }
    }

    @Test("a manifest that is removed while its files wait lets them wait for another one")
    func removed() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("list.md5", "a.mp4\nb.mp4\n")
        try scene.write("a.mp4")
        try await scene.run {
            try await scene.settle("list.md5", "a.mp4")
            try await scene.waits("a.mp4", "waits for b.mp4")
            try Files.remove(scene.scene.folder.path.appending("cam/list.md5"))
            try await scene.waits("a.mp4", "waits for a manifest that lists it")
            try scene.write("second.md5", "a.mp4\n")
            try await scene.settle("second.md5")
            try await scene.records(["second.md5", "a.mp4"])
        }
    }

    @Test("two manifests that list the same files, or each other, do not wait for each other for ever")
    func shared() async throws {
        let scene = try await GroupScene(GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5", "*.sha1"]))
        try scene.write("list.md5", "a.mp4\nb.mp4\nlist.sha1\n")
        try scene.write("list.sha1", "a.mp4\nb.mp4\nlist.md5\n")
        try scene.write("a.mp4")
        try scene.write("b.mp4")
        try await scene.run {
            try await scene.settle("a.mp4", "list.sha1")
            try await scene.waits("a.mp4", "waits for b.mp4")
            try await scene.settle("list.md5", "b.mp4")
            try await scene.records(["list.md5", "list.sha1", "a.mp4", "b.mp4"])
        }
        #expect(try await scene.units().count == 1)
    }

    @Test("a new version of a listed file joins the group that went before")
    func newVersion() async throws {
        let scene = try await GroupScene(Self.rule)
        try scene.write("list.md5", "a.mp4\n")
        try scene.write("a.mp4")
        try await scene.run {
            try await scene.settle("list.md5", "a.mp4")
            try await scene.records(["list.md5", "a.mp4"])
            try scene.write("a.mp4", "more bytes than before")
            try await scene.settle("a.mp4")
            // It was not copied yet, so its record is that of the new version.
            try await eventually("the version is recorded", every: .milliseconds(20)) {
                scene.scene.clocks.advance(by: .seconds(1))
                scene.scene.parts.signals.grouping.signal()
                return try await scene.scene.uploads()["a.mp4"]?.size == 22
            }
        }
        for upload in try await scene.scene.uploads().values {
            let group = try await scene.scene.store.read { try $0.groups.summary(ofUpload: upload.id) }
            #expect(group?.files == 2 && group?.name == "list.md5")
        }
    }
}
