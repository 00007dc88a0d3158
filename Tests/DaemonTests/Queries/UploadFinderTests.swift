import API
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Finding uploads by user input")
struct UploadFinderTests {
    @Test("an id, its prefix, a key, a path and the end of a path find the upload")
    func references() async throws {
        let scene = try await ComponentScene()
        let id = try await scene.record("day/a.mp4", key: "the-key")
        _ = try await scene.record("day/b.mp4")
        let path = scene.folder.path.appending("cam/day/a.mp4").display
        for reference in [id, id.lowercased(), "the-key", path, "a.mp4", "day/a.mp4"] {
            #expect(try await scene.finder.find(reference).upload.id == id, "\(reference)")
        }
    }

    @Test("a prefix needs six characters")
    func shortPrefix() async throws {
        let scene = try await ComponentScene()
        let id = try await scene.record("a.mp4")
        #expect(try await scene.finder.find(String(id.prefix(20))).upload.id == id)
        await #expect { _ = try await scene.finder.find(String(id.prefix(5))) } throws: {
            ($0 as? Refusal)?.code == .notFound
        }
    }

    @Test("the end of a path that two files have is ambiguous, and names both")
    func ambiguous() async throws {
        let scene = try await ComponentScene()
        let ids = [try await scene.record("one/a.mp4"), try await scene.record("two/a.mp4")]
        #expect(Set(try await scene.finder.candidates("a.mp4").map(\.upload.id)) == Set(ids))
        await #expect { _ = try await scene.finder.find("a.mp4") } throws: {
            guard let refusal = $0 as? Refusal else { return false }
            return refusal.code == .ambiguous && ids.allSatisfy { refusal.message.contains($0) }
        }
    }

    @Test("a path finds the newest version of its file")
    func newest() async throws {
        let scene = try await ComponentScene()
        let older = try await scene.record("a.mp4")
        _ = try await scene.store.write { try $0.transitions.cancel([older]) }
        scene.clocks.advance(by: .seconds(1))
        let newer = try await scene.record("a.mp4", size: 200)
        #expect(try await scene.finder.find("a.mp4").upload.id == newer)
    }

    @Test("ids exclude a folder, a destination and all")
    func exclusive() async throws {
        let scene = try await ComponentScene()
        for selection in [Selection(ids: ["x"], folder: "cam"), Selection(ids: ["x"], all: true)] {
            await #expect { _ = try await scene.finder.rows(selection) } throws: {
                ($0 as? Refusal)?.code == .badRequest
            }
        }
    }
}
