import Core
import Linux
import TestKit
import Testing

/// What the receiver has answered is on the disk.
@Suite("Receiver with a power cut", .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
struct ReceiverCutTests {
    @Test("a file that was answered as complete is there and whole after a cut", arguments: LoopDisk.Kind.allCases)
    func complete(_ kind: LoopDisk.Kind) async throws {
        try await cut(kind) { inbox in
            try await inbox.upload(noise(300_000), ["filename": "clip.mp4"])
        } check: { inbox, _ in
            let content = try inbox.content("clip.mp4")
            #expect(content == noise(300_000))
        }
    }

    @Test("bytes that a HEAD has confirmed are there after a cut", arguments: LoopDisk.Kind.allCases)
    func partial(_ kind: LoopDisk.Kind) async throws {
        try await cut(kind) { inbox in
            let location = try await inbox.made(300_000, ["filename": "clip.mp4"])
            #expect(try await inbox.patch(location, at: 0, Array(noise(300_000).prefix(200_000))).status == 204)
            #expect(try await inbox.offset(location) == 200_000)
            return location
        } check: { inbox, location in
            let offset = try await inbox.offset(location)
            #expect(offset == 200_000)
            let rest = try await inbox.patch(location, at: 200_000, Array(noise(300_000).dropFirst(200_000)))
            #expect(rest.status == 204)
            let content = try inbox.content("clip.mp4")
            #expect(content == noise(300_000))
        }
    }

    /// Runs `work` with a receiver on a disk, cuts its power, and starts the receiver again.
    private func cut(
        _ kind: LoopDisk.Kind, _ work: (ReceiverFixture) async throws -> String,
        check: (_ inbox: ReceiverFixture, _ location: String) async throws -> Void
    ) async throws {
        let disk = try await LoopDisk(kind)
        let inbox = ReceiverFixture(into: disk.path.appending("in"))
        try await inbox.start()
        let location: String
        do { location = try await work(inbox) } catch {
            await inbox.stop()
            throw error
        }
        // Before the receiver's end, which may sync.
        try await disk.shutDown()
        await inbox.stop()
        try await disk.remount()
        try await inbox.start()
        do { try await check(inbox, location) } catch {
            await inbox.stop()
            throw error
        }
        await inbox.stop()
    }
}
