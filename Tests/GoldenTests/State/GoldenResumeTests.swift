import Core
import Linux
import Synchronization
import Testing

@testable import Store
@testable import TestKit

/// Uploads of the recorded state resume where they were, each at a server that has the acknowledged bytes.
@Suite("Uploads of a recorded state", .timeLimit(.minutes(Patience.minutes(1))))
struct GoldenResumeTests {
    private struct Ids {
        let nas = "01M8ASXH4472EQFRTPZFH45M7Z", form = "01M8ASXH5JSS7PSE89XEGKN7JX"
        let video = "01M8ASXH74ZCV95BC3AM5B9XRE", oss = "01M8ASXHA0M8WDRAQTJG257DGQ"
        let vod = "01M8ASXHANRZDHD7WTE8NP21MH", bucket = "01M8ASXJBRSJKH8W5Y6F81JRX0"
        let archive = "01M8ASX7Y6KRBE3TNPS9XTR040"
    }
    private let ids = Ids()

    @Test("no byte is sent twice: tus, a bucket, a form, Vimeo and a folder")
    func goesOn() async throws {
        let scene = try GoldenScene()
        let (bucket, form, vimeo) = (try S3Emulator(), try form(in: scene), try VimeoServer())
        scene.places["S3"] = bucket.url
        scene.places["FORM"] = String(form.url.dropLast("/upload".count))
        scene.places["VIMEO"] = vimeo.url
        scene.places["VIMEOBYTES"] = vimeo.bytesURL
        try await scene.loadWithReceiver()
        // The folder contains no hidden file any more.
        try scene.folder.write("archive/.there", [])
        fill(bucket)
        vimeo.change { state in
            var upload = VimeoServer.Upload(
                number: 1, flow: .tus, size: 1_200_000, isVideo: true, fields: ["name": "large"])
            upload.bytes = Array(GoldenScene.content("video/large.mp4", 1_200_000).prefix(262_144))
            state.uploads = [upload]
        }
        let part = try FileStatus(at: scene.root.appending(FilePath("archive/.large.mp4.sluice-\(ids.archive)-1.part")))
        try await scene.start()
        let wanted = [ids.nas, ids.form, ids.video, ids.bucket, ids.archive]
        try await eventually("each upload is complete; the log says \(scene.log())", every: .milliseconds(100)) {
            let page = try JSONTree(try await scene.must("list", ["--list", "completed", "--json"]))
            return Set(page["uploads"]?.items.compactMap { $0["id"]?.text } ?? []).isSuperset(of: wanted)
        }
        #expect(bucket.objects["large.mp4"]?.bytes == GoldenScene.content("bucket/large.mp4", 17_000_000))
        #expect(bucket.requests.filter { $0.hasPrefix("part ") }.sorted() == ["part 2", "part 3", "part 4"])
        #expect(!bucket.requests.contains("create"))
        #expect(form.requests.filter { $0.hasPrefix("block") }.sorted() == (4...12).map { "block \($0)" }.sorted())
        #expect(form.refused == [])
        #expect(vimeo.videos.map(\.bytes) == [GoldenScene.content("video/large.mp4", 1_200_000)])
        #expect(!vimeo.requests.contains("create") && !vimeo.requests.contains("patch 0"), "\(vimeo.requests)")
        let kept = try FileStatus(at: scene.root.appending("archive/large.mp4"))
        #expect(kept.inode == part.inode)
        for (name, folder) in [("nas", "received"), ("archive", "archive")] {
            let size = name == "nas" ? 1_200_000 : 5_000_000
            let there = try Files.read(scene.root.appending(FilePath("\(folder)/large.mp4")), limit: 32 << 20)
            #expect(there == GoldenScene.content("\(name)/large.mp4", size))
        }
        // The bodies that reached each server, by its own count.
        #expect(form.received < 900_000 + 60_000)
        #expect(vimeo.state.withLock { $0.received } == 1_200_000 - 262_144)
        // The bytes that each attempt sent are less than the whole file. They include segments that the kernel repeats
        // when an acknowledgement is late, as on a loaded machine: 64 KiB each.
        let sent = try sent(scene)
        for name in ["nas", "video", "form"] { #expect(try #require(sent[name]) < 1_200_000) }
        #expect(sent["archive"] == 1_854_272)
        // The bucket removes the uploads that a person has cancelled.
        try await eventually("the bucket has removed the cancelled upload", every: .milliseconds(50)) {
            bucket.uploads.isEmpty
        }
    }

    @Test("an OSS bucket and ApsaraVideo VOD are queried for the upload of the checkpoint")
    func asked() async throws {
        let scene = try GoldenScene()
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(503, [("Content-Type", "application/xml")], "<Error><Code>ServiceUnavailable</Code></Error>")
        }
        scene.places["OSS"] = server.url
        try await scene.load()
        let uploads = try [ids.oss, ids.vod].map { id in
            try #require(
                try scene.rows("SELECT json_extract(body, '$.upload') FROM checkpoint WHERE upload = '\(id)'").first)
        }
        try await scene.start()
        for upload in uploads {
            try await eventually("a request names \(upload); so far \(server.seen)", every: .milliseconds(50)) {
                server.seen.contains { $0.hasPrefix("GET ") && $0.contains(upload) }
            }
        }
        #expect(!server.seen.contains { $0.hasPrefix("PUT") || $0.contains("?uploads") }, "\(server.seen)")
    }

    @Test("the receiver reports the offset of a partial upload, and has the finished ones")
    func receiver() async throws {
        let scene = try GoldenScene()
        try await scene.loadWithReceiver()
        let port = try #require(scene.places["NAS"]?.split(separator: ":").last.flatMap { Int($0) })
        for (id, offset, length) in [
            ("70e19e2f7540d6b03dfdd5e31fd148bf", "314747", "1200000"),
            ("8f202a1a8d792623e031f37ac55c95d0", "246128", "400000"),
            ("07a8cc900d32f6d280c25126ed0e4657", "0", "4000"), ("1c526dad9585be3f2c36de5695c263df", nil, nil),
        ] as [(String, String?, String?)] {
            let wire = try Wire(port: port)
            try await wire.send("HEAD /files/\(id) HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\n\r\n")
            let head = try await wire.reply(isHead: true)
            #expect(head.status == 200)
            if let offset { #expect(head.headers["upload-offset"] == offset) }
            if let length { #expect(head.headers["upload-length"] == length) }
            if offset == nil { #expect(head.headers["upload-offset"] == head.headers["upload-length"]) }
        }
        for (name, source, size) in [
            ("small 1.mp4", "nas/small 1.mp4", 3000), ("both/clip.mp4", "both/clip.mp4", 20_000),
        ] {
            let there = try Files.read(scene.root.appending("received").appending(FilePath(name)))
            #expect(there == GoldenScene.content(source, size))
        }
    }

    @Test("the state folder of a killed daemon opens, including content only in its log")
    func asItWas() async throws {
        let folder = TemporaryFolder()
        let archive = GoldenScene.fixtures.appending("state-as-it-was.tar.xz").display
        let child = try Child(
            "/usr/bin/env", ["tar", "-C", folder.path.display, "-xJf", archive],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        #expect(try await child.end(within: .seconds(20)) == .status(0), "\((try? child.standardError()) ?? "")")
        #expect(try FileStatus(at: folder.path.appending("state/sluice.db-wal")).size > 0)
        let store = try await Store.open(
            folder.path.appending("state"), clocks: SystemClocks(), sorting: .newestFirst)
        #expect(try await store.read { try $0.uploads.row(ids.bucket) }?.upload.acked == 5_242_880)
        #expect(await store.seq >= 114)
        await store.close()
    }

    // MARK: Servers

    /// Adds the first part of one upload, and of one that was cancelled.
    private func fill(_ bucket: S3Emulator) {
        bucket.change { state in
            for (id, key) in [("2~2/+=%", "large.mp4"), ("2~1/+=%", "cancelled.mp4")] {
                let content = GoldenScene.content("bucket/\(key)", 5 << 20)
                var upload = S3Emulator.Upload(key: key)
                upload.parts[1] = S3Emulator.Part(bytes: content, etag: "\"1-5242880-9\"", checksum: nil)
                state.uploads[id] = upload
            }
        }
    }

    /// A server with the first three blocks.
    private func form(in scene: GoldenScene) throws -> FormServer {
        var options = FormServer.Options()
        options.block = 100_000
        try Files.makeFolders(scene.root.appending("forms"))
        let server = try FormServer("resumable", into: scene.root.appending("forms"), options)
        let content = GoldenScene.content("form/large.mp4", 1_200_000)
        server.state.withLock { state in
            var upload = FormServer.Upload(total: 1_200_000, count: 12, name: "large.mp4")
            for index in 0..<3 { upload.blocks[index] = Array(content[(index * 100_000)..<((index + 1) * 100_000)]) }
            (upload.acceptedBlocks, upload.nominal) = (3, 100_000)
            state.uploads["1200000-largemp4-c17296dd938d12f1"] = upload
        }
        return server
    }

    /// Bytes that each destination's attempt has sent, from the log.
    private func sent(_ scene: GoldenScene) throws -> [String: Int64] {
        let lines = try scene.daemon?.standardError().split(separator: "\n") ?? []
        return Dictionary(
            lines.compactMap { line in
                guard
                    let found = line.firstMatch(
                        of: /uploaded and verified .*destination=(\w+) .*large.mp4.* sent=(\d+)/)
                else { return nil }
                return (String(found.1), Int64(found.2) ?? .max)
            }, uniquingKeysWith: +)
    }
}

extension GoldenScene {
    /// The receiver is started before the database is filled, because checkpoints name its port.
    func loadWithReceiver() async throws {
        try await load(before: startReceiver)
    }
}
