import Core
import Digests
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// Properties that the daemon relies on, for destinations that take small files together; other destinations take none.
@Suite("Bundles at every destination", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct BundleContractTests {
    private func stagedUploads(_ names: [FilePath], size: Int = 700) throws -> [StagedUpload] {
        try names.enumerated().map { number, name in
            try StagedUpload(size + number, id: "id\(number)", name: name, seed: UInt64(number))
        }
    }

    /// Sends the files that were left out, each alone, like the daemon.
    private func sendRest(
        _ stagedUploads: [StagedUpload], but done: [String: RemoteObject], to end: any RemoteFixture,
        _ reporter: RecordingBundleReporter
    ) async throws {
        for staged in stagedUploads where done[staged.order.id] == nil {
            let recorder = RecordingReporter()
            if let checkpoint = reporter.checkpoints[staged.order.id] { try await recorder.record(checkpoint) }
            _ = try await staged.send(to: end, recorder)
        }
    }

    @Test(
        "each file arrives complete under its name, whatever its name and size",
        arguments: Tier.sample(TestedRemote.all, 3))
    func all(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let stagedUploads = try stagedUploads(
                ContractTests.names.filter(end.keeps) + ["empty.mp4", "front/a.mp4", "front/b.mp4"],
                size: end.keepsEmpty ? 0 : 1)
            let reporter = RecordingBundleReporter()
            let done = try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            if end.destination.bundling != nil { #expect(done.count == stagedUploads.count) }
            for staged in stagedUploads where done[staged.order.id] != nil {
                #expect(try await end.objects[end.place(of: staged.order.name)] == staged.content)
                #expect(reporter.spent[staged.order.id] ?? 0 == Int64(staged.content.count))
            }
            // Where files are read back, each is read once.
            #expect(reporter.received.isEmpty || reporter.received == reporter.spent)
            try await sendRest(stagedUploads, but: done, to: end, reporter)
            #expect(
                try await end.objects
                    == Dictionary(
                        uniqueKeysWithValues: stagedUploads.map { (end.place(of: $0.order.name), $0.content) }))
            #expect(try await end.remains.isEmpty)
            #expect(!reporter.wasEarly, "no byte is sent before its place is recorded")
        }
    }

    @Test("draining files that are not being sent yet are left out", arguments: TestedRemote.all)
    func paused(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            guard end.destination.bundling != nil else { return }
            let stagedUploads = try stagedUploads(["a.mp4", "b.mp4", "c.mp4"])
            let reporter = RecordingBundleReporter(pausing: ["id0", "id1", "id2"])
            let done = try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            #expect(done.count == 1 && Set(done.keys) == Set(reporter.spent.keys), "\(done.keys) and \(reporter.spent)")
            #expect(try await end.objects.count == 1)
            try await sendRest(stagedUploads, but: done, to: end, reporter)
            #expect(try await end.objects.count == 3)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "unusual files are left out, and are uploaded alone without loss", arguments: Tier.sample(TestedRemote.all, 3))
    func notPlain(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let stagedUploads = try stagedUploads([
                "held.mp4", "taken.mp4", "twice.mp4", "twice.mp4", "gone.mp4", "cut.mp4", "f.mp4",
            ])
            // The same content has the name; another content has the name.
            _ = try await StagedUpload(700, id: "early", name: "held.mp4", seed: 0).send(to: end, RecordingReporter())
            _ = try await StagedUpload(50, id: "other", name: "taken.mp4", seed: 99).send(to: end, RecordingReporter())
            try stagedUploads[4].restage(nil)
            try stagedUploads[5].restage(Array(stagedUploads[5].content.dropLast()))
            let reporter = RecordingBundleReporter()
            let done = try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            if end.destination.bundling != nil {
                #expect(Set(done.keys).isSuperset(of: ["id2", "id6"]))
                #expect(Set(done.keys).isDisjoint(with: ["id3", "id4", "id5"]))
            }
            try stagedUploads[4].restage(stagedUploads[4].content)
            try stagedUploads[5].restage(stagedUploads[5].content)
            try await sendRest(stagedUploads, but: done, to: end, reporter)
            let held = try await end.objects
            #expect(held["held.mp4"] == stagedUploads[0].content)
            #expect(held["f.mp4"] == stagedUploads[6].content)
            #expect(Set(held.values).isSuperset(of: stagedUploads.map(\.content)))
            #expect(held.count == 8)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "names that are equal at the remote, and different here, do not replace each other", arguments: TestedRemote.all
    )
    func oneName(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let names = [FilePath(bytes: [0xFF, 0xFE]), FilePath("\\xff\\xfe"), FilePath("plain")]
            let stagedUploads = try stagedUploads(names.filter(end.keeps))
            let reporter = RecordingBundleReporter()
            let done = try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            try await sendRest(stagedUploads, but: done, to: end, reporter)
            #expect(try await Set(end.objects.values) == Set(stagedUploads.map(\.content)))
        }
    }

    @Test("a file cancelled before it started leaves nothing", arguments: TestedRemote.all)
    func notHeld(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let stagedUploads = try stagedUploads(["a.mp4", "b.mp4"])
            let reporter = RecordingBundleReporter(losing: ["id0"])
            let done = try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            #expect(done["id0"] == nil)
            #expect(try await end.objects["a.mp4"] == nil)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "stopped after the start, each file is there once and complete after the next attempt",
        arguments: Tier.sample(TestedRemote.all, 3))
    func stopped(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let stagedUploads = try stagedUploads((0..<20).map { FilePath("\($0).mp4") })
            let reporter = RecordingBundleReporter(stopping: true)
            let task = Task {
                try await end.destination.upload(together: stagedUploads.map(\.order), reporter: reporter)
            }
            var done: [String: RemoteObject] = [:]
            do { done = try await task.value } catch is CancellationError { #expect(reporter.wasStopped) }
            try await sendRest(stagedUploads, but: done, to: end, reporter)
            #expect(
                try await end.objects
                    == Dictionary(uniqueKeysWithValues: stagedUploads.map { ($0.order.name, $0.content) }))
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test("with an unreachable server, nothing is reported as sent and nothing lost", arguments: TestedRemote.all)
    func away(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let stagedUploads = try stagedUploads(["a.mp4", "b.mp4"])
            try await end.goAway()
            #expect(
                try await end.destination.upload(
                    together: stagedUploads.map(\.order), reporter: RecordingBundleReporter()
                )
                .isEmpty)
        }
    }
}

@Suite("Bundles in a folder")
struct TogetherInFolderTests {
    @Test("stopped at any moment, every file with its final name is reported, and no other")
    func stoppedTells() async throws {
        var dice = Dice(seed: 11)
        for round in 0..<20 {
            let folder = TemporaryFolder()
            let target = DirectoryTarget(
                name: "archive", path: folder.path, mount: nil, marker: nil, mode: nil, clocks: SystemClocks(),
                disk: SlowDisk(timeout: .seconds(60)))
            let stagedUploads = try (0..<32).map {
                try StagedUpload(100, id: "\($0)", name: FilePath("\($0)"), seed: UInt64($0))
            }
            let task = Task {
                try await DirectoryDestination(target, taken: .suffix).upload(
                    together: stagedUploads.map(\.order), reporter: RecordingBundleReporter())
            }
            let enough = Int.random(in: 0..<32, using: &dice)
            func named() throws -> Set<String> {
                Set(try Files.names(in: folder.path).compactMap(\.text).filter { !$0.hasPrefix(".") })
            }
            while try named().count < enough, try named().count < 32 { await Task.yield() }
            task.cancel()
            var told: Set<String> = []
            do { told = Set(try await task.value.keys) } catch is CancellationError {}
            #expect(try told == named(), "round \(round)")
        }
    }

    @Test(
        "reported files are on disk, and survive a power cut",
        .enabled("\(LoopDisk.need)") {
            await LoopDisk.isPossible.value
        }, arguments: LoopDisk.Kind.allCases)
    func durable(_ kind: LoopDisk.Kind) async throws {
        let disk = try await LoopDisk(kind)
        let target = DirectoryTarget(
            name: "archive", path: disk.path, mount: nil, marker: nil, mode: nil, clocks: SystemClocks(),
            disk: SlowDisk(timeout: .seconds(60)))
        let stagedUploads = try (0..<20).map { number in
            try StagedUpload(
                number * 5000, id: "\(number)", name: FilePath("day \(number % 3)/\(number)"), seed: UInt64(number))
        }
        let done = try await DirectoryDestination(target, taken: .suffix).upload(
            together: stagedUploads.map(\.order), reporter: RecordingBundleReporter())
        #expect(done.count == stagedUploads.count)
        try await disk.cutPower()
        for staged in stagedUploads {
            #expect(try Files.read(disk.path.appending(staged.order.name)) == staged.content)
        }
    }
}

/// Takes the notes of a bundle.
private final class RecordingBundleReporter: BundleReporter {
    private struct Pages {
        var checkpoints: [String: Checkpoint] = [:]
        var spent: [String: Int64] = [:]
        var received: [String: Int64] = [:]
        var wasEarly = false
        var wasStopped = false
    }
    private let pages = Mutex(Pages())
    private let lost: Set<String>
    private let stops: Bool
    private let pausing: Set<String>

    /// - Parameters:
    ///   - losing: Uploads that were cancelled meanwhile.
    ///   - stopping: Cancels the task when bytes are about to be sent.
    ///   - pausing: Uploads that are to stay where they are once bytes of another have been sent.
    init(losing lost: Set<String> = [], stopping stops: Bool = false, pausing: Set<String> = []) {
        self.pausing = pausing
        self.lost = lost
        self.stops = stops
    }

    var checkpoints: [String: Checkpoint] { pages.withLock { $0.checkpoints } }
    var spent: [String: Int64] { pages.withLock { $0.spent } }
    var received: [String: Int64] { pages.withLock { $0.received } }
    var wasEarly: Bool { pages.withLock { $0.wasEarly } }
    var wasStopped: Bool { pages.withLock { $0.wasStopped } }

    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String> {
        pages.withLock { $0.checkpoints.merge(checkpoints) { $1 } }
        return Set(checkpoints.keys).subtracting(lost)
    }
    func sending(_ id: String, _ offset: Int64) {
        pages.withLock { pages in
            if pages.checkpoints[id] == nil { pages.wasEarly = true }
            pages.spent[id] = max(pages.spent[id] ?? 0, offset)
        }
    }
    func spent(_ id: String, _ bytes: Int64) {
        pages.withLock { pages in
            if pages.checkpoints[id] == nil { pages.wasEarly = true }
            pages.spent[id, default: 0] += bytes
        }
    }
    func received(_ id: String, _ bytes: Int64) { pages.withLock { $0.received[id, default: 0] += bytes } }
    func shouldPause(_ id: String) -> Bool { pausing.contains(id) && !spent.isEmpty }
    func entered(_ phase: UploadPhase) {
        guard stops, phase == .uploading else { return }
        pages.withLock { $0.wasStopped = true }
        withUnsafeCurrentTask { $0?.cancel() }
    }
}
