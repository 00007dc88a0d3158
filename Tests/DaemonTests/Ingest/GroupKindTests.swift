import Core
import Glibc
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Groups by directory and by manifest, without a daemon.
@Suite("Groups by directory and manifest", .timeLimit(.minutes(Patience.minutes(2))))
struct GroupKindTests {
    private struct Scene {
        let scene: ComponentScene
        let grouper: FileGrouper

        init(_ rule: GroupRule, marker: String? = nil, largest: Int64? = nil) async throws {
            scene = try await ComponentScene {
                $0.folders[0].group = rule
                $0.folders[0].watch.limits.maxSize = largest
                $0.folders[0].watch.marker = marker.flatMap { MarkerName($0) }
                $0.folders[0].watch.include = rule.include(with: $0.folders[0].watch.include)
            }
            try Files.makeFolders(scene.folder.path.appending("cam"))
            grouper = scene.parts.grouper()
        }

        /// Writes a file.
        func write(_ name: FilePath, _ text: String = "some bytes") throws {
            _ = try scene.folder.write(FilePath("cam").appending(name), Array(text.utf8))
        }

        /// Describes a file as if it had settled.
        func settled(_ name: FilePath) throws -> SettledFile {
            let root = scene.folder.path.appending("cam")
            let status = try FileStatus(at: root.appending(name))
            return SettledFile(
                folder: "cam", root: root, relative: name, status: status,
                identity: FileIdentity(
                    folder: "cam", relative: name, size: status.size, modified: status.modified, inode: status.inode,
                    born: nil, fileSystem: nil), settledBy: .quiet)
        }

        func settle(_ names: FilePath...) async throws {
            #expect(await grouper.partition(try names.map { try settled($0) }).isEmpty)
        }

        func names() async throws -> Set<String> { Set(try await scene.uploads().keys) }

        /// The reasons why files wait.
        func reasons() async -> [String: String] {
            await grouper.waiting(naming: 100)["cam"]?.first.reduce(into: [:]) {
                $0[$1.file.relative.display] = $1.reason
            } ?? [:]
        }

        /// Runs the loop until `body` has ended.
        func run(_ body: () async throws -> Void) async throws {
            let loop = Task { try await grouper.run() }
            defer { loop.cancel() }
            try await body()
        }

        /// Waits until the file waits for this reason.
        func waits(_ name: String, _ reason: String) async throws {
            try await eventually("\(name) waits: \(reason)", every: .milliseconds(20)) {
                scene.clocks.advance(by: .seconds(1))
                scene.parts.signals.grouping.signal()
                return await reasons()[name]?.contains(reason) == true
            }
        }

        /// Waits until exactly these are recorded.
        func records(_ wanted: Set<String>) async throws {
            try await eventually("these are recorded: \(wanted)", every: .milliseconds(20)) {
                scene.clocks.advance(by: .seconds(1))
                scene.parts.signals.grouping.signal()
                return try await names() == wanted
            }
        }

        /// The units of the recorded files: the files that go together, by the remote names.
        func units() async throws -> Set<Set<String>> {
            var groups: [Int: Set<String>] = [:]
            for (name, upload) in try await scene.uploads() {
                let summary = try #require(try await scene.store.read { try $0.groups.summary(ofUpload: upload.id) })
                groups[summary.files * 1_000_000 + Int(summary.bytes), default: []].insert(name)
                #expect(summary.folder == "cam")
            }
            return Set(groups.values)
        }
    }

    // MARK: Directories

    @Test("a directory is recorded as one when the last of its files has settled, and not before")
    func directory() async throws {
        let scene = try await Scene(GroupRule(by: .directory, wait: .zero))
        for name: FilePath in ["card/a.mp4", "card/sub/b.mp4", "other/c.mp4", "top.mp4"] { try scene.write(name) }
        try await scene.run {
            #expect(await scene.grouper.partition([try scene.settled("top.mp4")]).count == 1)
            try await scene.settle("card/a.mp4")
            try await scene.waits(
                "card/a.mp4", "waits for card/sub/b.mp4, which has not settled: `group.by: directory`")
            #expect(try await scene.names().isEmpty)
            try await scene.settle("other/c.mp4")
            try await scene.records(["other/c.mp4"])
            try await scene.settle("card/sub/b.mp4")
            try await scene.records(["other/c.mp4", "card/a.mp4", "card/sub/b.mp4"])
        }
        let uploads = try await scene.scene.uploads()
        let id = try #require(uploads["card/a.mp4"]?.id)
        let group = try #require(try await scene.scene.store.read { try $0.groups.summary(ofUpload: id) })
        #expect(group.name == "card" && group.files == 2 && group.bytes == 20 && group.verified == 0)
    }

    @Test("a file that comes later joins the group of its directory")
    func late() async throws {
        let scene = try await Scene(GroupRule(by: .directory, wait: .zero))
        try scene.write("card/a.mp4")
        try await scene.run {
            try await scene.settle("card/a.mp4")
            try await scene.records(["card/a.mp4"])
            try scene.write("card/b.mp4")
            try await scene.settle("card/b.mp4")
            try await scene.records(["card/a.mp4", "card/b.mp4"])
        }
        #expect(try await scene.units() == [["card/a.mp4", "card/b.mp4"]])
    }

    @Test("a directory waits for a file that its folder leaves out only for a while")
    func leftOut() async throws {
        let scene = try await Scene(GroupRule(by: .directory, wait: .zero))
        try scene.write("card/a.mp4")
        try scene.write("card/.hidden")
        try scene.write("card/stays.mp4")
        try await scene.run {
            try await scene.settle("card/a.mp4")
            try await scene.waits("card/a.mp4", "waits for card/stays.mp4")
            try await scene.records(["card/a.mp4"])
        }
    }

    @Test("a subdirectory that cannot be read holds its group back, and is named")
    func unreadable() async throws {
        let scene = try await Scene(GroupRule(by: .directory, wait: .zero))
        try scene.write("card/a.mp4")
        // A directory that no one can list, whatever the rights of the test: its ignore file is a directory.
        try scene.write("card/sub/.sluiceignore/x")
        try await scene.run {
            try await scene.settle("card/a.mp4")
            try await scene.waits("card/a.mp4", "sub")
            #expect(try await scene.names().isEmpty)
        }
    }

    @Test("a directory waits for a file whose marker is missing")
    func marker() async throws {
        let scene = try await Scene(GroupRule(by: .directory, wait: .zero), marker: "{name}.done")
        for name: FilePath in ["card/a.mp4", "card/a.mp4.done", "card/b.mp4"] { try scene.write(name) }
        try await scene.run {
            try await scene.settle("card/a.mp4")
            try await scene.waits("card/a.mp4", "waits for card/b.mp4, which has not settled")
            #expect(try await scene.names().isEmpty)
            try scene.write("card/b.mp4.done")
            try await scene.settle("card/b.mp4")
            try await scene.records(["card/a.mp4", "card/b.mp4"])
        }
    }

    @Test("files that wait when the rule changes are grouped by the new one")
    func changedRule() async throws {
        let scene = try await Scene(GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5"]))
        try scene.write("card/a.mp4")
        try scene.write("card/b.mp4")
        try scene.write("top.mp4")
        try await scene.run {
            try await scene.settle("card/a.mp4", "card/b.mp4", "top.mp4")
            try await scene.waits("top.mp4", "waits for a manifest that lists it")
            var runtime = scene.scene.context.configuration.value
            runtime.settings.folders[0].group = GroupRule(by: .directory, wait: .zero)
            scene.scene.context.configuration.replace(runtime)
            try await scene.records(["card/a.mp4", "card/b.mp4", "top.mp4"])
        }
        let uploads = try await scene.scene.uploads()
        for (name, group) in [("card/a.mp4", "card"), ("card/b.mp4", "card"), ("top.mp4", nil)] {
            let id = try #require(uploads[name]?.id)
            let summary = try await scene.scene.store.read { try $0.groups.summary(ofUpload: id) }
            #expect(summary?.name.display == group)
        }
    }

    // MARK: Manifests

    private static let rule = GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5"])

    @Test(
        "the files of a manifest are recorded with it when all have settled, in any order of arrival", arguments: 0..<6)
    func manifest(_ order: Int) async throws {
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(Self.rule, largest: 100)
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

    @Test("a manifest that is removed while its files wait lets them wait for another one")
    func removed() async throws {
        let scene = try await Scene(Self.rule)
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
        let scene = try await Scene(GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5", "*.sha1"]))
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
        let scene = try await Scene(Self.rule)
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
