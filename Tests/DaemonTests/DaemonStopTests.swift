import API
import Core
import Glibc
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Daemon

@Suite("Daemon")
struct DaemonStopTests {
    @Test("the daemon stops at once during a large copy, which the next start repeats")
    func stopDuringCopy() async throws {
        let scene = try await DaemonScene()
        let large = try scene.folder.write("cam/large", [])
        // The file is one hole, but the copy reads it like any other file.
        try systemCall("truncate", on: "large") { large.withCString { truncate($0, 2 << 30) } }
        let id = try await scene.add(large)
        try await eventually("the copy has begun") { try !scene.copies.isEmpty }
        try await scene.stop()
        #expect(try await scene.state(id) == .staging)
        #expect(scene.remote.began.isEmpty)
    }

    @Test("the daemon stops at once during an upload, which is queued again")
    func stopDuringUpload() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        try await scene.stop()
        #expect(try await scene.state(id) == .queued)
        #expect(scene.remote.running.isEmpty)
    }
}
