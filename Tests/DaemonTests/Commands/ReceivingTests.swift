import API
import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Bytes that are handed over without a file, over a scripted remote.
@Suite("Files that a client hands over", .timeLimit(.minutes(Patience.minutes(1))))
struct ReceivingTests {
    /// Returns pieces one after another.
    private func pieces(_ pieces: [[UInt8]], then end: (any Error)? = nil) -> @Sendable () async throws -> [UInt8]? {
        let rest = Mutex(pieces[...])
        return {
            if let next = rest.withLock({ $0.popFirst() }) { return next }
            if let end { throw end }
            return nil
        }
    }

    private struct Cut: Error, Equatable {}

    @Test("received bytes are uploaded once, their copy is removed only then, and no source is looked for")
    func once() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let reply = try await scene.daemon.receive(
            ReceiveRequest(name: "clip.mp4", context: ["trip": "alps"]), pieces([noise(1000), noise(500)]))
        let made = try #require(reply.uploads.first)
        #expect(made.path == "/dev/stdin/clip.mp4" && made.folder == "-" && made.size == 1500)
        #expect(made.keeping == "received" && made.context == ["trip": "alps"])
        try await scene.isRunning(1)
        #expect(try scene.copies.count == 1)
        scene.remote.letGo()
        try await scene.reach(.completed, [made.id])
        try await eventually("the staged copy has been deleted") { try scene.copies.isEmpty }
        try await eventually("the release is done") {
            try await scene.daemon.show(made.id).upload.sourceState == "done"
        }
        try await scene.stop()
    }

    @Test("status shows how many bytes have arrived so far")
    func coming() async throws {
        let scene = try await DaemonScene()
        let count = Mutex(0)
        let daemon = scene.daemon
        _ = try await daemon.receive(ReceiveRequest(name: "clip.mp4")) {
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { return noise(1000) }
            let run = try #require(try await daemon.status().staging.running?.first)
            #expect(run.work == "receiving" && run.path == "/dev/stdin/clip.mp4")
            #expect(run.done == 1000 && run.total == 0 && run.eta == nil)
            return nil
        }
        #expect(count.withLock { $0 } == 2)
        #expect(try await daemon.status().staging.running == nil)
        try await scene.stop()
    }

    @Test("an incomplete reception leaves no file or record", arguments: [0, 1, 3])
    func cut(_ count: Int) async throws {
        let scene = try await DaemonScene()
        await #expect(throws: Cut()) {
            try await scene.daemon.receive(
                ReceiveRequest(name: "a"), pieces(Array(repeating: noise(100_000), count: count), then: Cut()))
        }
        #expect(try scene.copies.isEmpty)
        #expect(try await scene.daemon.list(ListQuery()).uploads.isEmpty)
        try await scene.stop()
    }

    @Test("bytes that do not fit into staging are refused, early if the size is known, and their space is returned")
    func full() async throws {
        let scene = try await DaemonScene(cap: 1_000_000)
        for size in [nil, 2_000_000] as [Int64?] {
            let asked = Atomic(0)
            let error = try await #require(throws: Refusal.self) {
                try await scene.daemon.receive(ReceiveRequest(name: "big", size: size)) {
                    asked.wrappingAdd(1, ordering: .relaxed)
                    return noise(100_000)
                }
            }
            #expect(error.code == .noRoom)
            #expect(error.message.contains("staging.max_size"), "\(error.message)")
            let times = asked.load(ordering: .relaxed)
            #expect(times == (size == nil ? 11 : 0))
            #expect(try scene.copies.isEmpty)
        }
        let reply = try await scene.daemon.receive(
            ReceiveRequest(name: "fits"), pieces(Array(repeating: noise(100_000), count: 10)))
        try await scene.reach(.completed, reply.uploads.map(\.id))
        try await scene.stop()
    }

    @Test("staged files and receptions share the space: neither uses the other's reservation")
    func shared() async throws {
        let scene = try await DaemonScene(cap: 1_000_000)
        let (gate, opener) = AsyncStream<Void>.makeStream()
        let isFirst = Atomic(true)
        async let reply = scene.daemon.receive(ReceiveRequest(name: "a", size: 900_000)) {
            guard isFirst.exchange(false, ordering: .relaxed) else { return nil }
            for await _ in gate { break }
            return noise(900_000)
        }
        try await eventually("the reception has begun") { try scene.copies.count == 1 }
        let file = try await scene.add("file", size: 200_000)
        try await eventually("the file waits for staging space") { await scene.daemon.stager.isShort }
        #expect(try await scene.state(file) == .staging)
        opener.yield()
        try await scene.reach(.completed, try await reply.uploads.map(\.id) + [file])
        try await scene.stop()
    }

    @Test(
        "an impossible request is refused before a byte is read",
        arguments: [
            (ReceiveRequest(name: ""), "1 to 255 bytes"),
            (ReceiveRequest(name: String(repeating: "a", count: 256)), "255"),
            (ReceiveRequest(name: "a/b"), "without a folder"), (ReceiveRequest(name: ".."), "without a folder"),
            (ReceiveRequest(name: "a\nb"), "control character"),
            (ReceiveRequest(name: "a", to: ["naz"]), "did you mean `nas`"),
            (ReceiveRequest(name: "a", key: ""), "1 to 1024 bytes"),
            (ReceiveRequest(name: "a", headers: ["X": "1"]), "`headers` cannot be used with `nas`"),
            (ReceiveRequest(name: "a", url: "http://x/"), "`url` cannot be used with `nas`"),
        ])
    func refused(_ request: ReceiveRequest, _ words: String) async throws {
        let scene = try await DaemonScene()
        let error = try await #require(throws: Refusal.self) {
            try await scene.daemon.receive(request) { throw Cut() }
        }
        #expect(error.code == .badRequest)
        #expect(error.message.contains(words), "\(error.message)")
        try await scene.stop()
    }

    @Test("a key in use is refused before a byte is read")
    func key() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let first = try await scene.daemon.receive(ReceiveRequest(name: "a", key: "k"), pieces([noise(10)]))
        let error = try await #require(throws: Refusal.self) {
            try await scene.daemon.receive(ReceiveRequest(name: "b", key: "k")) { throw Cut() }
        }
        #expect(error.code == .conflict && error.id == first.uploads.first?.id)
        scene.remote.letGo()
        try await scene.stop()
    }

    @Test("a key that stands for one file alone is refused also after its upload has ended, and has left the list")
    func keyOnce() async throws {
        let scene = try await DaemonScene()
        var request = ReceiveRequest(name: "a", key: "k")
        request.isKeyOnce = true
        let once = request
        let done = Mutex<String?>(nil)
        let (content, other) = (pieces([noise(10)]), pieces([noise(10)]))
        // Another upload gets the key and ends while these bytes arrive.
        let late = try await #require(throws: Refusal.self) {
            try await scene.daemon.receive(once) {
                if done.withLock({ $0 }) == nil {
                    let first = try #require(try await scene.daemon.receive(once, content).uploads.first)
                    try await scene.reach(.completed, [first.id])
                    done.withLock { $0 = first.id }
                }
                return try await other()
            }
        }
        #expect(late.code == .conflict && late.id == done.withLock { $0 })
        for _ in 0..<2 {
            let error = try await #require(throws: Refusal.self) {
                try await scene.daemon.receive(once) { throw Cut() }
            }
            #expect(error.code == .conflict && error.id == late.id)
            _ = try await scene.daemon.flush(FlushRequest())
        }
        // Without the demand a key may be used again.
        let again = ReceiveRequest(name: "a", key: "k")
        #expect(try await scene.daemon.receive(again, pieces([noise(20)])).uploads.count == 1)
        try await scene.stop()
    }

    @Test("a key stands for one file alone at each destination by itself")
    func keyElsewhere() async throws {
        let scene = try await DaemonScene { settings in
            var second = settings.destinations[0]
            (second.name, second.type) = ("cloud", "second")
            settings.destinations.append(second)
        }
        func once(_ to: [String]) -> ReceiveRequest {
            var request = ReceiveRequest(name: "a", to: to, key: "k")
            request.isKeyOnce = true
            return request
        }
        for destination in ["nas", "cloud"] {
            let uploads = try await scene.daemon.receive(once([destination]), pieces([noise(10)])).uploads
            #expect(uploads.map(\.destination) == [destination])
            try await scene.reach(.completed, uploads.map(\.id))
            let both = try await #require(throws: Refusal.self) {
                try await scene.daemon.receive(once(["cloud", "nas"])) { throw Cut() }
            }
            #expect(both.code == .conflict && both.id == uploads.first?.id)
        }
        try await scene.stop()
    }

    @Test("the copy of a cancelled reception is rescued, and retry is refused")
    func cancelled() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let content = noise(1000)
        let made = try #require(
            try await scene.daemon.receive(ReceiveRequest(name: "clip.mp4"), pieces([content])).uploads.first)
        try await scene.isRunning(1)
        _ = try await scene.daemon.cancel(Selection(ids: [made.id]))
        let rescued = scene.folder.path.appending("staging/rescued")
        try await eventually("the copy has been rescued") {
            try FileStatus.ifPresent(at: rescued) != nil && Files.names(in: rescued).count == 1
        }
        let name = try #require(try Files.names(in: rescued).first)
        #expect(name.display.hasSuffix("-clip.mp4"))
        #expect(try Files.read(rescued.appending(name)) == content)
        await #expect(throws: Refusal.self) { try await scene.daemon.retry(Selection(ids: [made.id])) }
        scene.remote.letGo()
        try await scene.stop()
    }
}
