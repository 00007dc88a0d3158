import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The contents of requests, and particularities of single presets.
extension ChunkedFormTests {
    private static let block = Int(FormScene.block)

    @Test("Fine Uploader's server answers count: another id, and the request to start again")
    func fineUploader() async throws {
        let scene = try FormScene("fineuploader")
        scene.server.set {
            $0.newID = "the-servers-own"
            $0.reset = 3
        }
        let staged = try StagedUpload(3 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(
            scene.server.requests == ["block 1", "block 2", "block 3", "block 1", "block 2", "block 3"],
            "\(scene.server.requests)")
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        try await scene.close()
    }

    @Test("a server that renames the upload gets every later block under the new name, including parallel ones")
    func newIDInParallel() async throws {
        let scene = try FormScene("fineuploader", ["parallel_blocks": .whole(4)])
        scene.server.set {
            $0.newID = "the-servers-own"
            $0.readPause = 2000
        }
        let staged = try StagedUpload(9 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        #expect(scene.server.refused.isEmpty && scene.server.unfinished == 0, "\(scene.server.refused)")
        #expect(scene.server.maxConcurrent > 1)
        try await scene.close()
    }

    @Test(
        "a rename during other blocks sends those again under the new name")
    func newIDInBetween() async throws {
        let scene = try FormScene("fineuploader", ["parallel_blocks": .whole(4)])
        scene.server.set { $0.readPause = 2000 }
        let staged = try StagedUpload(9 * Self.block)
        let recorder = RecordingReporter()
        let isConfirmed = Mutex(false)
        recorder.stop { pages in
            guard pages.accepted >= 2 * FormScene.block, isConfirmed.withLock({ $0 }) == false else { return false }
            isConfirmed.withLock { $0 = true }
            scene.server.set { $0.newID = "the-servers-own" }
            return false
        }
        _ = try await staged.send(to: scene, recorder)
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        #expect(scene.server.ids.contains("the-servers-own") && scene.server.refused.isEmpty)
        try await scene.close()
    }

    @Test("Fine Uploader's server is told of the first block of a resumed upload, and of no other")
    func resumed() async throws {
        let scene = try FormScene("fineuploader")
        let staged = try StagedUpload(6 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 2 * Self.block)
        try await staged.sendStopped(to: scene, recorder, accepting: 4 * Self.block)
        #expect(scene.server.resumes == [3])
        _ = try await staged.send(to: scene, recorder)
        #expect(scene.server.resumes == [3, 5])
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        // No block was acknowledged, so the upload does not continue.
        let other = try FormScene("fineuploader")
        other.server.set { $0.refusals = (503, 1, nil) }
        let (object, errors) = try await other.deliver(staged)
        #expect(object != nil && errors.count == 1 && other.server.resumes.isEmpty)
        try await scene.close()
        try await other.close()
    }

    @Test("a name that no header can carry fails the file before any request, with a remedy")
    func namesInHeaders() async throws {
        let headers: [String: SettingValue] = ["send.headers": .map(["X-Name": .literal("{name}")])]
        let names: [FilePath] = [
            "a\r\nX-Evil: 1.mp4", "a\nb.mp4", "a\u{7F}.mp4", FilePath(bytes: [0x61, 0xFF, 0x2E, 0x6D]),
            " a.mp4", "a.mp4 ", "\ta.mp4", "a.mp\t",
        ]
        for name in names {
            let scene = try FormScene("breakpoint", headers)
            let staged = try StagedUpload(2 * Self.block, name: name)
            let error = try await staged.failure(to: scene)
            #expect(error.remedy == .failUpload && error.failure.code == .nameUnfit && !error.failure.retryable)
            #expect(error.failure.message.contains("write `{name:uri}`"), "\(error.failure.message)")
            #expect(scene.server.requests.isEmpty)
            let coded = try scene.again(["send.headers": .map(["X-Name": .literal("{name:uri}")])])
            _ = try await coded.upload(staged.order, reporter: RecordingReporter())
            #expect(try scene.objects.values.map { $0 } == [staged.content])
            try await scene.close()
        }
        let plain = try FormScene("breakpoint", headers)
        _ = try await StagedUpload(10, name: "\u{E9} \u{4E2D}.mp4").send(to: plain, RecordingReporter())
        try await plain.close()
        // Inside a header a blank stays, and an invalid text of the configuration is no fault of the file.
        let within = try FormScene(
            "breakpoint", ["send.headers": .map(["X-Name": .literal("<{name}>"), "X-Ext": .literal("{ext} {ext} ")])])
        _ = try await StagedUpload(10, name: " a ").send(to: within, RecordingReporter())
        try await within.close()
    }

    @Test("an upload started before its header could not carry the name fails as well")
    func namesInLaterHeaders() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(3 * Self.block, name: "a\nb.mp4")
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: Self.block)
        let later = try scene.again(["send.headers": .map(["X-Name": .literal("{name}")])])
        var order = staged.order
        order.checkpoint = recorder.last
        let error = await #expect(throws: UploadError.self) { try await later.upload(order, reporter: recorder) }
        #expect(error?.remedy == .failUpload)
        // An invalid secret is no fault of the file.
        let secret = try scene.again([
            "secrets": .secrets(["key": .literal("a\nb")]), "send.headers": .map(["X-Key": .literal("{secret:key}")]),
        ])
        let other = await #expect(throws: UploadError.self) { try await secret.upload(order, reporter: recorder) }
        #expect(other?.remedy == .authenticate && other?.failure.message.contains("a\nb") == false)
        try await scene.close()
    }

    @Test("a field that is an object is JSON: strings are encoded, numbers stay, secrets and objects are allowed")
    func objects() async throws {
        let fields = Mutex<[[UInt8]]>([])
        let server = try FakeServer { exchange in
            let form = try MultipartForm(exchange.body(), contentType: exchange.header("content-type"))
            for part in form.parts where part.name == "meta" { fields.withLock { $0.append(part.body) } }
            exchange.reply(200, [], "{}")
        }
        let scene = try FormScene(
            "dropzone",
            [
                "url": .text(server.url + "/upload"), "secrets": .secrets(["key": .literal("k\"1")]),
                "send.fields": .map([
                    "meta": .json([
                        "name": .literal("{name}"), "size": .literal("{total}"), "last": .literal("{is_last}"),
                        "number": .literal("{index0}"), "label": .literal("block {index1}"), "empty": .literal(""),
                        "as \"it\"": .json(["crc": .literal("{crc32:dec}"), "key": .literal("{secret:key}")]),
                        "coded": .literal("{name:json}"), "none": .json([:]),
                    ])
                ]),
            ])
        let name: FilePath = "a \"b\"\r\n\\ \u{E9}.mp4"
        _ = try await StagedUpload(2 * Self.block - 1, name: name).send(to: scene, RecordingReporter())
        let documents = fields.withLock { $0 }
        #expect(documents.count == 2)
        for (index, bytes) in documents.enumerated() {
            let document = try #require(JSONValue.read(bytes), "\(String(decoding: bytes, as: UTF8.self))")
            func value(_ pointer: String) throws -> JSONValue? { document[try #require(JSONPointer(pointer))] }
            #expect(try value("/name") == .text(String(decoding: name.bytes, as: UTF8.self)))
            #expect(try value("/coded") == value("/name"))
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(text.contains("\"size\":1999") && text.contains("\"number\":\(index),"), "\(text)")
            #expect(text.contains("\"last\":\(index == 1),") && text.contains("\"none\":{},"), "\(text)")
            #expect(try value("/label") == .text("block \(index + 1)") && value("/empty") == .text(""))
            #expect(try value("/as \"it\"/key") == .text("k\"1"))
            #expect(text.contains("\"crc\":") && !text.contains("\"crc\":\""), "\(text)")
        }
        try await scene.close()
    }

    @Test("digests, secrets and names of the file part are filled in like everywhere")
    func filePart() async throws {
        let names = Mutex<[[UInt8]]>([])
        let server = try FakeServer { exchange in
            let form = try MultipartForm(exchange.body(), contentType: exchange.header("content-type"))
            names.withLock { $0.append(form.file?.filename ?? []) }
            exchange.reply(200, [], "{}")
        }
        let scene = try FormScene(
            "dropzone",
            [
                "url": .text(server.url + "/upload"), "secrets": .secrets(["key": .literal("k1")]),
                "send.file_part.filename": .text("{crc32}-{secret:key}-{index0}"),
            ])
        let staged = try StagedUpload(Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(names.withLock { $0 } == [Array("\(FormServer.crc(staged.content))-k1-0".utf8)])
        try await scene.close()
    }

    @Test(
        "a file address before the last block is kept, and the rest is sent",
        arguments: [1, 2, 4])
    func earlyURL(_ block: Int) async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.earlyURL = block }
        let staged = try StagedUpload(4 * Self.block)
        let recorder = RecordingReporter()
        let object = try await staged.send(to: scene, recorder)
        #expect(scene.server.requests == ["open"] + (1...4).map { "block \($0)" })
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        // The address in the last answer counts.
        #expect(object.url == "http://files.example/clip.mp4")
        try await scene.close()
    }

    @Test(
        "an early address survives a restart, and a server that then accepts no more fails the file with a message"
    )
    func earlyURLAndNoMore() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.earlyURL = 2 }
        let staged = try StagedUpload(4 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 2 * Self.block)
        #expect(recorder.last?["done_url"] == "http://files.example/early")
        scene.server.set { $0.forgets = (after: 2, times: 1) }
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .failUpload && error.failure.code == .endedEarly, "\(error)")
        #expect(scene.server.requests.count { $0 == "open" } == 1)
        try await scene.close()
    }
}
