import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Groups by directory", .timeLimit(.minutes(Patience.minutes(2))))
struct DirectoryGroupTests {
    @Test("a directory is recorded as one when the last of its files has settled, and not before")
    func directory() async throws {
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero))
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
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero))
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
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero))
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
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero))
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
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero), marker: "{name}.done")
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
        let scene = try await GroupScene(GroupRule(by: .manifest, wait: .zero, manifests: ["*.md5"]))
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

    @Test("a directory with too many files does not wait for all of them, and the others join it")
    func tooMany() async throws {
        let scene = try await GroupScene(GroupRule(by: .directory, wait: .zero), most: 3)
        for name: FilePath in ["card/a", "card/b", "card/c", "card/d"] { try scene.write(name) }
        try await scene.run {
            try await scene.settle("card/a", "card/b", "card/c")
            try await scene.records(["card/a", "card/b", "card/c"])
            try await scene.settle("card/d")
            try await scene.records(["card/a", "card/b", "card/c", "card/d"])
        }
        #expect(try await scene.units().count == 1)
    }
}
