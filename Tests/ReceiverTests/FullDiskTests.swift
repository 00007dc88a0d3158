import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite(
    "Receiver on a full disk", .timeLimit(.minutes(Patience.minutes(1))),
    .enabled(if: SmallDisk.isPossible, "mounting needs root"))
struct FullDiskTests {
    @Test("an upload that cannot fit is refused at once, and leaves no file")
    func announced() async throws {
        let disk = try SmallDisk()
        let inbox = ReceiverFixture(into: disk.path)
        try await inbox.start()
        // The receiver accepts exactly the free space that it announces.
        let offer = try await inbox.ask("OPTIONS", "/files/").headers["sluice-space-free"]
        let most = try #require(offer.flatMap { Int($0) })
        #expect((1 << 20..<4 << 20).contains(most))
        #expect(try await inbox.create(most + 65_536, ["filename": "a"]).status == 507)
        let reply = try await inbox.create(5 << 20, ["filename": "a"])
        #expect(reply.status == 507)
        #expect(reply.text.contains("do not fit"))
        #expect(try inbox.unfinished() == 0)
        await inbox.stop()
    }

    @Test("a disk that fills up keeps the received bytes, and the upload continues when space is free")
    func filled() async throws {
        let disk = try SmallDisk()
        let inbox = ReceiverFixture(into: disk.path)
        try await inbox.start()
        let content = noise(2_500_000)
        let location = try await inbox.made(content.count, ["filename": "a", "sha256": sha256(content)])
        let filler = Filler(in: disk.path)
        try filler.fill(atMost: 2_500_000)
        #expect(try await inbox.patch(location, at: 0, content).status == 507)
        let offset = try #require(try await inbox.offset(location))
        #expect(offset > 1_000_000 && offset < content.count)
        #expect(try await inbox.patch(location, at: offset, Array(content[offset...])).status == 507)
        try filler.remove()
        let again = try #require(try await inbox.offset(location))
        #expect(try await inbox.patch(location, at: again, Array(content[again...])).status == 204)
        #expect(try inbox.content("a") == content)
        await inbox.stop()
    }

    @Test("if the last bytes fit and their record does not, the file is not refused")
    func unrecorded() async throws {
        let disk = try SmallDisk(files: 64)
        let inbox = ReceiverFixture(into: disk.path)
        try await inbox.start()
        let content = noise(200_000)
        let location = try await inbox.made(content.count, ["filename": "a", "sha256": sha256(content)])
        var fillers: [FilePath] = []
        do throws(SystemError) {
            while true {
                let filler = disk.path.appending(FilePath(".filler-\(fillers.count)"))
                _ = try Descriptor.open(filler, for: .creating)
                fillers.append(filler)
            }
        } catch { try #require(error.isFull) }
        #expect(try await inbox.patch(location, at: 0, content).status == 503)
        #expect(try await inbox.ask("HEAD", location).status == 507)
        for filler in fillers { try Files.remove(filler) }
        #expect(try await inbox.offset(location) == content.count)
        #expect(try inbox.content("a") == content)
        await inbox.stop()
    }

    @Test(
        "a folder with another disk mounted on it gets its files, or loses none while they do not fit")
    func mounted() async throws {
        let root = TemporaryFolder()
        let disk = try SmallDisk(at: root.path.appending("card"))
        let inbox = ReceiverFixture(into: root.path)
        try await inbox.start()
        let content = noise(2_500_000)
        let pairs = ["sluicePath": "card/a", "mtime": "1700000000000000000"]
        let location = try await inbox.upload(content, pairs)
        #expect(try inbox.content("card/a") == content)
        #expect(try FileStatus(at: disk.path.appending("a")).modified == 1_700_000_000_000_000_000)
        #expect(try inbox.unfinished() == 0)

        let second = noise(2_500_000, seed: 2)
        let late = try await inbox.made(second.count, ["sluicePath": "card/b"])
        // This is no refusal of the file: its sender has to ask again.
        #expect(try await inbox.patch(late, at: 0, second).status == 503)
        #expect(try await inbox.ask("HEAD", late).status == 507)
        #expect(try Files.names(in: disk.path) == ["a"])
        #expect(try await inbox.ask("DELETE", location).status == 204)
        #expect(try Files.names(in: disk.path).isEmpty)
        // All bytes have arrived: a HEAD is enough to make the file appear.
        #expect(try await inbox.offset(late) == second.count)
        #expect(try inbox.content("card/b") == second)
        await inbox.stop()
    }
}
