import Core
import Glibc
import Linux
import Receiver
import TestKit
import Testing
import WebServer

@Suite("Receiver", .timeLimit(.minutes(Patience.minutes(1))))
struct ReceiverTests {
    @Test("a complete upload appears under its name with its bytes and time", arguments: [0, 1, 65_537, 3_000_000])
    func whole(_ size: Int) async throws {
        try await ReceiverFixture.open { inbox in
            let content = noise(size)
            let location = try await inbox.upload(
                content, ["filename": "a.mp4", "mtime": "1700000000123456789", "sha256": sha256(content)])
            #expect(try inbox.content("a.mp4") == content)
            #expect(try FileStatus(at: inbox.folder.appending("a.mp4")).modified == 1_700_000_000_123_456_789)
            #expect(try await inbox.offset(location) == size)
            #expect(try inbox.unfinished() == 0)
        }
    }

    @Test("no file appears under the name before the last byte")
    func hidden() async throws {
        try await ReceiverFixture.open { inbox in
            let location = try await inbox.made(10, ["filename": "a"])
            let reply = try await inbox.patch(location, at: 0, noise(9))
            #expect(reply.status == 204)
            #expect(reply.headers["upload-offset"] == "9")
            #expect(try inbox.delivered() == [])
            #expect(try await inbox.patch(location, at: 9, [1]).headers["upload-offset"] == "10")
            #expect(try inbox.delivered() == ["a"])
        }
    }

    @Test("an interrupted body is kept, and another receiver over the folder continues")
    func restart() async throws {
        let inbox = ReceiverFixture()
        try await inbox.start()
        let content = noise(1_000_000)
        let location = try await inbox.made(content.count, ["filename": "a", "sha256": sha256(content)])
        let wire = try await inbox.begin(location, at: 0, length: content.count, Array(content[..<600_000]))
        // A second connection sees the first one's bytes only in the log when that ends.
        wire.vanish()
        try await eventually(
            "the log reports the interrupted upload", holds: { inbox.log.contains("interrupted a at 600000") })
        await inbox.stop()
        try await inbox.start()
        #expect(try await inbox.offset(location) == 600_000)
        #expect(try await inbox.patch(location, at: 600_000, Array(content[600_000...])).status == 204)
        #expect(try inbox.content("a") == content)
        await inbox.stop()
    }

    @Test("stopping within a body keeps the written bytes")
    func stopped() async throws {
        let inbox = ReceiverFixture()
        try await inbox.start()
        let location = try await inbox.made(1_000_000, ["filename": "a"])
        let wire = try await inbox.begin(location, at: 0, length: 1_000_000, noise(300_000))
        try await eventually(
            "the receiver has written the bytes",
            holds: {
                let names = try Files.names(in: inbox.folder.appending(".sluice-receive"))
                let data = names.first { $0.fileExtension == "data" }
                return try data.map { try FileStatus(at: inbox.folder.appending(".sluice-receive").appending($0)).size }
                    == 300_000
            })
        await inbox.stop()
        #expect(try await wire.isAtEnd())
        try await inbox.start()
        #expect(try await inbox.offset(location) == 300_000)
        await inbox.stop()
    }

    @Test("bytes without a sync are not trusted after another boot")
    func boots() async throws {
        let inbox = ReceiverFixture()
        try await inbox.start()
        let location = try await inbox.made(100, ["filename": "a"])
        _ = try await inbox.patch(location, at: 0, noise(40))
        await inbox.stop()
        // A power cut: the file is longer than in the record, and the record is from another boot.
        let id = String(location.dropFirst("/files/".count))
        let record = inbox.folder.appending(FilePath(".sluice-receive/\(id).json"))
        let text = String(decoding: try Files.read(record), as: UTF8.self)
        let boot = String(decoding: try Files.read("/proc/sys/kernel/random/boot_id"), as: UTF8.self).dropLast()
        #expect(text.contains(boot))
        try Files.replace(record, with: Array(text.replacing(boot, with: "another").utf8))
        let data = inbox.folder.appending(FilePath(".sluice-receive/\(id).data"))
        try Descriptor.open(data, for: .updating).setSize(77, named: data)
        try await inbox.start()
        #expect(try await inbox.offset(location) == 40)
        let content = noise(40) + noise(60, seed: 2)
        #expect(try await inbox.patch(location, at: 40, noise(60, seed: 2)).status == 204)
        #expect(try inbox.content("a") == content)
        await inbox.stop()
    }

    @Test("the newest request wins: a HEAD takes the upload over from a silent connection")
    func takeover() async throws {
        try await ReceiverFixture.open { inbox in
            let content = noise(1_000)
            let location = try await inbox.made(1_000, ["filename": "a"])
            let silent = try await inbox.begin(location, at: 0, length: 1_000, Array(content[..<400]))
            // Not by a HEAD, which would take over the upload before the bytes have arrived.
            let id = String(location.dropFirst("/files/".count))
            let data = inbox.folder.appending(FilePath(".sluice-receive/\(id).data"))
            try await eventually("the receiver has written 400 bytes") {
                try FileStatus(at: data).size == 400 ? true : nil
            }
            #expect(try await inbox.offset(location) == 400)
            // If the old connection is still alive, it is refused, and its bytes are not mixed in.
            try await silent.send(Array(content[400..<500]))
            #expect(try await silent.reply().status == 423)
            #expect(try await inbox.patch(location, at: 400, Array(content[400...])).status == 204)
            #expect(try inbox.content("a") == content)
        }
    }

    @Test("content that differs from its announcement never appears, and the upload starts again")
    func mismatch() async throws {
        try await ReceiverFixture.open { inbox in
            let content = noise(1_000)
            let location = try await inbox.made(1_000, ["filename": "a", "sha256": sha256(content)])
            let reply = try await inbox.patch(location, at: 0, noise(1_000, seed: 7))
            #expect(reply.status == 460)
            #expect(reply.text.contains(sha256(content)))
            #expect(try inbox.delivered() == [])
            #expect(try await inbox.offset(location) == 0)
            #expect(try await inbox.patch(location, at: 0, content).status == 204)
            #expect(try inbox.content("a") == content)
        }
    }

    @Test("a lost response to POST costs nothing: the same sender's upload is found again, unfinished and finished")
    func repeated() async throws {
        let inbox = ReceiverFixture()
        try await inbox.start()
        let content = noise(1_000)
        let pairs = ["filename": "a", "sluiceId": "u1", "sha256": sha256(content)]
        let location = try await inbox.made(1_000, pairs)
        #expect(try await inbox.made(1_000, pairs) == location)
        _ = try await inbox.patch(location, at: 0, Array(content[..<500]))
        await inbox.stop()
        try await inbox.start()
        #expect(try await inbox.made(1_000, pairs) == location)
        #expect(try await inbox.patch(location, at: 500, Array(content[500...])).status == 204)
        #expect(try await inbox.made(1_000, pairs) == location)
        await inbox.stop()
        try await inbox.start()
        #expect(try await inbox.made(1_000, pairs) == location)
        #expect(try await inbox.offset(location) == 1_000)
        #expect(try inbox.delivered() == ["a"])
        // Another content with the same id is another upload.
        #expect(try await inbox.made(1_001, pairs) != location)
        await inbox.stop()
    }

    @Test("a name with the same content is done, any other gets a number, and no file is replaced")
    func taken() async throws {
        try await ReceiverFixture.open { inbox in
            try await inbox.upload(noise(100), ["filename": "clip.mp4"])
            try await inbox.upload(noise(100), ["filename": "clip.mp4"])
            #expect(try inbox.delivered() == ["clip.mp4"])
            try await inbox.upload(noise(100, seed: 2), ["filename": "clip.mp4"])
            try await inbox.upload(noise(99), ["filename": "clip.mp4"])
            try await inbox.upload(noise(99), ["filename": "clip.mp4"])
            #expect(try inbox.delivered() == ["clip (2).mp4", "clip (3).mp4", "clip.mp4"])
            #expect(try inbox.content("clip.mp4") == noise(100))
            #expect(try inbox.content("clip (2).mp4") == noise(100, seed: 2))
            #expect(try inbox.unfinished() == 0)
        }
    }

    @Test("symbolic links below the folder are not followed")
    func links() async throws {
        try await ReceiverFixture.open { inbox in
            let outside = inbox.temporary.path.appending("outside")
            try Files.makeFolders(outside)
            try inbox.temporary.write("outside/file", [1, 2, 3])
            for (link, target) in [("cam", outside), ("file", outside.appending("file"))] {
                let made = inbox.folder.appending(FilePath(link)).withCString { name in
                    target.withCString { symlink($0, name) }
                }
                #expect(made == 0)
            }
            try await inbox.upload(noise(10), ["relativePath": "cam/a"])
            try await inbox.upload([1, 2, 3], ["filename": "file"])
            #expect(try Files.names(in: outside) == ["file"])
            #expect(try inbox.content("cam (2)/a") == noise(10))
            #expect(try inbox.content("file (2)") == [1, 2, 3])
        }
    }

    @Test("20 simultaneous uploads arrive, each under its own name")
    func concurrent() async throws {
        try await ReceiverFixture.open { inbox in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let content = noise(100_000 + number, seed: UInt64(number))
                        try await inbox.upload(content, ["relativePath": "cam/same.bin", "sha256": sha256(content)])
                    }
                }
                try await group.waitForAll()
            }
            let names = try inbox.delivered()
            #expect(names.count == 20)
            #expect(Set(try names.map { try inbox.content($0)?.count ?? 0 }) == Set((0..<20).map { 100_000 + $0 }))
            #expect(try inbox.unfinished() == 0)
        }
    }

    @Test("a deleted upload is gone with its file, unless that is another file by now")
    func deleted() async throws {
        try await ReceiverFixture.open { inbox in
            let open = try await inbox.made(10, ["filename": "a"])
            #expect(try await inbox.ask("DELETE", open).status == 204)
            #expect(try await inbox.ask("HEAD", open).status == 404)
            let finished = try await inbox.upload(noise(10), ["filename": "b"])
            #expect(try await inbox.ask("DELETE", finished).status == 204)
            #expect(try inbox.delivered() == [])
            // Another program put another file there.
            let replaced = try await inbox.upload(noise(10), ["filename": "c"])
            try Files.remove(inbox.folder.appending("c"))
            try inbox.temporary.write("in/d", noise(10))
            try Files.rename(inbox.folder.appending("d"), to: inbox.folder.appending("c"))
            _ = try await inbox.ask("DELETE", replaced)
            // Two uploads refer to the one file.
            let first = try await inbox.upload(noise(20), ["filename": "e"])
            let second = try await inbox.upload(noise(20), ["filename": "e"])
            _ = try await inbox.ask("DELETE", first)
            #expect(try inbox.delivered() == ["c", "e"])
            _ = try await inbox.ask("DELETE", second)
            #expect(try inbox.delivered() == ["c", "e"])
            #expect(try inbox.unfinished() == 0)
        }
    }

    @Test("finished uploads are known for 7 days")
    func pruned() async throws {
        let clocks = ManualClocks()
        let inbox = ReceiverFixture()
        try await inbox.start(clocks: clocks)
        let location = try await inbox.upload(noise(10), ["filename": "a"])
        let open = try await inbox.made(10, ["filename": "b"])
        for (days, status) in [(6, 200), (2, 404)] {
            await inbox.stop()
            clocks.advance(by: .seconds(days * 86_400))
            try await inbox.start(clocks: clocks)
            #expect(try await inbox.ask("HEAD", location).status == status)
        }
        #expect(try await inbox.ask("HEAD", open).status == 200)
        #expect(try inbox.delivered() == ["a"])
        await inbox.stop()
    }

    @Test("one receiver at a time uses a folder")
    func locked() async throws {
        try await ReceiverFixture.open { inbox in
            let error = await #expect(throws: ReceiverError.self) {
                try await Receiver.start(into: inbox.folder, listen: .tcp(host: "127.0.0.1", port: 0)) { _ in }
            }
            #expect(error?.description.contains("in use by another receiver") == true)
        }
    }

    @Test("each fact is logged once, with printable names, and without a whole id or token")
    func logs() async throws {
        try await ReceiverFixture.open(token: "s3cret") { inbox in
            let wire = try await inbox.ask("POST", "/files", ["Authorization": "Bearer wrong", "Upload-Length": "1"])
            #expect(wire.status == 401)
            let reply = try await inbox.ask(
                "POST", "/files/",
                [
                    "Authorization": "Bearer s3cret", "Upload-Length": "0",
                    "Upload-Metadata": ReceiverFixture.metadata(["filename": Array("a\nb".utf8)]),
                ])
            let id = try #require(reply.headers["location"]).dropFirst("/files/".count)
            let lines = inbox.logged
            #expect(
                lines == [
                    "refused POST from 127.0.0.1: wrong token", "created a\\x0ab, 0 bytes, upload \(id.prefix(8))",
                    "received a\\x0ab, 0 bytes, sha256 \(sha256([])), upload \(id.prefix(8))",
                ])
        }
    }
}
