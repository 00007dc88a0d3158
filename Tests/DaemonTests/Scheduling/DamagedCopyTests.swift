import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// A staged copy that one destination finds damaged while the file is sent to another.
@Suite("Damaged copies of running uploads", .timeLimit(.minutes(Patience.minutes(2))))
struct DamagedCopyTests {
    @Test("the other upload is stopped, and both are sent from a new copy, from the first byte")
    func running() async throws {
        let scene = try await DaemonScene { settings in
            let place = settings.state.parent.appending("copies")
            try Files.makeFolders(place)
            settings.destinations.append(
                DestinationSettings(
                    name: "copies", type: "directory", values: ["path": .path(place)], policy: PolicyOverrides(),
                    place: ""))
            settings.folders[0].uploadTo = ["nas", "copies"]
        }
        _ = try await scene.daemon.pause(Selection(destination: "copies"))
        scene.remote.standard = .waitUploading
        let content = noise(1000)
        let path = try scene.folder.write("cam/a.mp4", content)
        let ids = try await scene.daemon.add(AddRequest(path: path.display)).uploads.map(\.id)
        #expect(ids.count == 2)
        try await eventually("the upload waits at the remote") { scene.remote.running.count == 1 }
        let copy = try #require(try scene.copies.first)
        var damaged = content
        damaged[100] ^= 1
        try scene.folder.write(FilePath("staging").appending(copy), damaged)
        // Only the next attempt: the running one ends when it is stopped.
        scene.remote.standard = .take
        _ = try await scene.daemon.resume(Selection(destination: "copies"))
        try await scene.reach(.completed, ids)
        #expect(scene.remote.contents == [content] && scene.remote.began.count == 2)
        #expect(try Files.read(scene.folder.path.appending("copies/a.mp4"), limit: 10_000) == content)
        for id in ids {
            let upload = try #require(try await scene.daemon.context.store.read { try $0.uploads.find(id) })
            #expect(upload.generation == 2)
        }
        try await scene.stop()
    }
}
