import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("What recordings say of themselves")
struct RecordingTests {
    private func picture() throws -> [UInt8] {
        try Files.read(FilePath(#filePath).parent.parent.appending("Fixtures/media/whole/camera.jpg"))
    }

    @Test("is shown once a recording is staged, and makes names where a template asks for it")
    func shown() async throws {
        let scene = try await AgentScene()
        let path = try scene.folder.write("cam/a.jpg", picture())
        let plain = try await scene.add(path)
        try await scene.reach(.completed, [plain])
        let media = try await scene.agent.show(plain).media
        #expect(media?.recordedAt == "2024-05-01T10:20:30.000Z")
        #expect(media?.camera == "Acme Still 5")
        #expect([media?.width, media?.height] == [48, 64])

        let named = try Template("{recorded:%Y}/{camera}/{width}x{height}/{name}")
        scene.written.edit { $0.folders[0].name = named }
        _ = try await scene.agent.reload()
        let id = try await scene.add(try scene.folder.write("cam/b.jpg", picture() + [0]))
        try await scene.reach(.completed, [id])
        #expect(try await scene.agent.house.store.upload(id)?.name == "2024/Acme Still 5/48x64/b.jpg")
        try await scene.stop()
    }

    @Test("is nothing for other files, and for a picture that says nothing")
    func nothing() async throws {
        let scene = try await AgentScene()
        let text = try await scene.add(try scene.folder.write("cam/a.txt", picture()))
        let noise = try await scene.add("a.jpg")
        try await scene.reach(.completed, [text, noise])
        for id in [text, noise] { #expect(try await scene.agent.show(id).media == nil) }
        try await scene.stop()
    }
}
