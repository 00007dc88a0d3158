import Core
import Glibc
import Linux
import Store
import Synchronization
import TestKit
import Testing

@Suite("Store")
struct StoreTests {
    @Test("a new asset is known as soon as it is recorded, in this version only")
    func known() async throws {
        let scene = try await Scene()
        let file = Scene.file("a.mp4")
        #expect(try await scene.store.areKnown([file.identity]) == [false])
        guard case .recorded? = try await scene.store.write({ try $0.arrivals.record([Scene.arrival(file)]) }).first
        else {
            throw Scene.Unexpected()
        }
        #expect(try await scene.store.areKnown([file.identity]) == [true])
        #expect(try await scene.store.areKnown([Scene.file("a.mp4", modified: 2_000).identity]) == [false])
        try await scene.stage(Scene.arrival(Scene.file("b.mp4")))
        #expect(
            try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("b.mp4"))]) } == [.known])
    }

    @Test("a released state folder is free at once, even while a copy of the lock's descriptor is open")
    func freeAtOnce() async throws {
        let folder = TemporaryFolder()
        let store = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
        let lock = folder.path.appending("lock").display
        // A child process has such a descriptor between fork and exec.
        let copies = try Files.names(in: "/proc/self/fd").compactMap { name -> CInt? in
            guard Files.real(FilePath("/proc/self/fd").appending(name))?.display == lock else { return nil }
            return CInt(name.display).map { dup($0) }
        }
        defer { for copy in copies { close(copy) } }
        #expect(!copies.isEmpty)
        await store.close()
        let again = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
        await again.close()
    }

    @Test("an asset that changed before its copy continues as the same asset")
    func renewed() async throws {
        let scene = try await Scene()
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            })
            .first
        else { throw Scene.Unexpected() }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        #expect(try await scene.store.read { try $0.staging.waiting(limit: 10, except: []) }.isEmpty)
        // A version with the same values must be accepted too: perhaps only its ctime changed.
        #expect(try await scene.store.areKnown([Scene.file("a").identity]) == [false])
        let outcome = try await scene.store.write {
            try $0.arrivals.record([Scene.arrival(Scene.file("a", size: 200))])
        }
        #expect(outcome == [.renewed(asset: asset)])
        #expect(try await scene.store.read { try $0.staging.waiting(limit: 10, except: []) }.map(\.size) == [200])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.size == 200)
    }

    @Test("a worker on a replaced version cannot report for the new one")
    func replaced() async throws {
        let scene = try await Scene()
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            })
            .first
        else { throw Scene.Unexpected() }
        let old = try #require(try await scene.store.read { try $0.assets.find(asset) }).version
        #expect(
            try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("a", size: 200))]) } == [
                .renewed(asset: asset)
            ])
        func expectUntouched() async throws {
            #expect(try await scene.store.read { try $0.staging.waiting(limit: 10, except: []) }.map(\.size) == [200])
            #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.state == .staging)
            #expect(try await scene.store.areKnown([Scene.file("a", size: 200).identity]) == [true])
        }
        try await scene.store.write {
            try $0.staging.record([StagedCopy(asset: asset, version: old, sha256: noise(32))])
        }
        try await expectUntouched()
        try await scene.store.write { try $0.staging.unsettle(asset, version: old) }
        try await expectUntouched()
        let failure = Failure(.local, code: .noReply, message: "x", at: scene.clocks.wall(), retryable: false)
        #expect(try await !scene.store.write { try $0.staging.fail(asset, failure, isGone: true, version: old) })
        try await expectUntouched()
        let new = try #require(try await scene.store.read { try $0.assets.find(asset) }).version
        try await scene.store.write {
            try $0.staging.record([StagedCopy(asset: asset, version: new, sha256: noise(32))])
        }
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.state == .queued)
    }

    @Test("each upload is claimed once, by priority and then by the configured order")
    func claims() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        for (name, time, priority) in [("new", 300, 0), ("old", 100, 0), ("first", 200, 9)] {
            try await scene.stage(Scene.arrival(Scene.file(name, modified: Int64(time)), priority: priority))
        }
        var order: [String] = []
        while let claim = try await scene.store.claim("nas", passingOver: []) {
            order.append(claim.upload.name.display)
        }
        #expect(order == ["first", "old", "new"])
        #expect(try await scene.store.claim("other", passingOver: []) == nil)
    }

    @Test("a hundred concurrent claims return a hundred different uploads")
    func concurrentClaims() async throws {
        let scene = try await Scene()
        for number in 0..<100 { try await scene.stage(Scene.arrival(Scene.file("f\(number)"))) }
        let ids = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<120 { group.addTask { try await scene.store.claim("nas", passingOver: [])?.upload.id } }
            return try await group.reduce(into: [String]()) { if let id = $1 { $0.append(id) } }
        }
        #expect(ids.count == 100)
        #expect(Set(ids).count == 100)
    }

    @Test(
        "uploads left running by a killed process are queued at the next start, with checkpoint and acknowledged bytes")
    func restart() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        func open() async throws -> Store { try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst) }
        var store: Store? = try await open()
        guard
            case .recorded(let asset, let ids)? = try await store?.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            }).first
        else { throw Scene.Unexpected() }
        try await store?.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        _ = try await store?.claim("nas", passingOver: [])
        try await store?.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: ids[0], acked: 40) }
        store = nil
        let again = try await eventually("the lock of the state has been released") { try? await open() }
        let claim = try await again.claim("nas", passingOver: [])
        #expect(claim?.upload.id == ids[0])
        #expect(claim?.upload.acked == 40)
        #expect(claim?.checkpoint == Checkpoint(["url": "u"]))
    }

    @Test("one daemon uses a state folder: a second one is told which process holds it")
    func locked() async throws {
        let scene = try await Scene()
        let error = await #expect(throws: StateLockedError.self) {
            try await Store.open(scene.folder.path.appending("state"), clocks: scene.clocks, sorting: .newestFirst)
        }
        #expect(error?.description.contains("in use by process") == true)
        _ = scene.store
    }

    @Test("counters match the rows after any sequence of states", arguments: 0..<8)
    func tallies(_ seed: Int) async throws {
        let scene = try await Scene()
        var dice = Dice(seed: UInt64(seed))
        var ids: [String] = []
        for step in 0..<60 {
            switch dice.next() % 6 {
            case 0, 1:
                ids += try await scene.stage(Scene.arrival(Scene.file("f\(step)"), to: ["nas", "cloud"])).uploads
            case 2:
                if let claim = try await scene.store.claim("nas", passingOver: []) {
                    let outcome = dice.outcome(scene.clocks)
                    try await scene.store.write { try $0.attempts.finish(claim.upload.id, outcome) }
                }
            case 3:
                if let id = ids.randomElement(using: &dice) {
                    _ = try await scene.store.write { try $0.transitions.cancel([id]) }
                }
            case 4:
                if let id = ids.randomElement(using: &dice) {
                    _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
                }
            default:
                if let id = ids.randomElement(using: &dice) {
                    try await scene.store.write { try $0.transitions.pause([id], true) }
                }
            }
        }
        var counted: [String: Int] = [:]
        for row in try await scene.store.rows(UploadFilter.all) {
            counted["\(row.asset.folder) \(row.upload.destination) \(row.upload.state)", default: 0] += 1
        }
        let tallied = try await scene.store.read { try $0.lists.tallies() }.filter { $0.uploads != 0 }
        #expect(
            Dictionary(uniqueKeysWithValues: tallied.map { ("\($0.folder) \($0.destination) \($0.state)", $0.uploads) })
                == counted)
        let staged = try await scene.store.rows(UploadFilter.all).filter { $0.asset.state == .staged }
        #expect(
            try await scene.store.read { try $0.staging.totalBytes() } == Int64(Set(staged.map(\.asset.id)).count * 100)
        )
    }

    @Test("a retry from the source makes a new copy, even if the old one's end is not recorded yet")
    func retryWhileReleased() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        // The release has removed the copy, and its record comes after the retry.
        _ = try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: false) }
        try await scene.store.write { try $0.releases.finish(asset) }
        #expect(try await scene.store.read { try $0.staging.waiting(limit: 10, except: []) }.map(\.id) == [asset])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.state == .staging)
    }

    @Test("a cancelled upload that the remote has completely is removed by a later release")
    func cancelledWhenFinished() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["part": ".a"]), for: uploads[0]) }
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        let remote = RemoteObject(id: nil, url: "u", verifiedBy: "digest")
        #expect(try await scene.store.write { try $0.attempts.finish(uploads[0], .verified(remote)) } == nil)
        let deletion = try #require(try await scene.store.read { try $0.remoteDeletions.all() }.first)
        #expect(deletion.checkpoint == Checkpoint(["part": ".a", Checkpoint.isFinished: "1"]))
    }

    @Test("the copies that an asset relies on are the same, queried together or alone")
    func ownedCopies() async throws {
        let scene = try await Scene()
        var dice = Dice(seed: 7)
        var staged: Set<Int64> = []
        for number in 0..<60 {
            let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("f\(number)")))
            if Bool.random(using: &dice) {
                staged.insert(asset)
            } else {
                _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
                try await scene.store.write { try $0.releases.finish(asset) }
            }
        }
        for _ in 0..<50 {
            let asked = (0..<Int.random(in: 1...40, using: &dice)).map { _ in Int64.random(in: -3...80, using: &dice) }
            #expect(try await scene.store.read { try $0.assets.owned(asked) } == staged.intersection(asked))
            var alone: Set<Int64> = []
            for number in asked {
                alone.formUnion(try await scene.store.read { try $0.assets.owned([number, 1_000_000]) })
            }
            #expect(alone == staged.intersection(asked))
        }
    }

    @Test("each generation has exactly one end event, and each event is reported once, in order")
    func events() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.claim("nas", passingOver: [])
        let failure = Failure(.permanent, code: .http(422), message: "no", at: scene.clocks.wall(), retryable: false)
        #expect(try await scene.store.write { try $0.attempts.finish(uploads[0], .refused(failure)) } == .failed)
        #expect(try await scene.store.write { try $0.attempts.finish(uploads[0], .refused(failure)) } == nil)
        _ = try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: true) }
        _ = try await scene.store.claim("nas", passingOver: [])
        let remote = RemoteObject(id: nil, url: nil, verifiedBy: "offset")
        #expect(try await scene.store.write { try $0.attempts.finish(uploads[0], .verified(remote)) } == .completed)
        #expect(try await scene.store.write { try $0.transitions.cancel(uploads) } == [.completed])
        let events = try await scene.store.read { try $0.events.list(after: 0, limit: 100) }
        #expect(
            events.map(\.type.rawValue) == [
                "added", "state", "state", "failed", "state", "state", "recovered", "completed",
            ])
        #expect(events.map(\.seq) == Array(1...8).map(Int64.init))
    }

    @Test("an upload that waits after a failure or a pause is not claimed too early")
    func waits() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.claim("nas", passingOver: [])
        let failure = Failure(.transient, code: .noReply, message: "x", at: scene.clocks.wall(), retryable: true)
        let until = scene.clocks.monotonic().advanced(by: .seconds(30))
        try await scene.store.write { try $0.attempts.finish(uploads[0], .retry(failure, until: until)) }
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
        #expect(try await scene.store.read { try $0.waits.next(after: scene.clocks.monotonic()) } == until)
        scene.clocks.advance(by: .seconds(30))
        try await scene.store.write { try $0.transitions.pause([uploads[0]], true) }
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
        try await scene.store.write { try $0.transitions.pause([uploads[0]], false) }
        #expect(try await scene.store.claim("nas", passingOver: ["cam"]) == nil)
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.attempt == 1)
    }

    @Test("a cancel during an attempt queues the removal, and the late answer is added to it")
    func cancelWhileOpening() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["creating": "1"]), for: uploads[0]) }
        #expect(try await scene.store.write { try $0.transitions.cancel(uploads) } == [.cancelled])
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: uploads[0]) }
        }
        #expect(
            try await scene.store.read { try $0.remoteDeletions.all() }.map(\.checkpoint) == [Checkpoint(["url": "u"])])
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 5) }.map(\.asset.id) == [asset])
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 5) }.map(\.verdict) == [.dropCopy])
    }

    @Test("the same content from the same path is not uploaded again, and its source is kept")
    func repeats() async throws {
        let scene = try await Scene()
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", modified: 1)), sha256: sha256)
        _ = try await scene.store.claim("nas", passingOver: [])
        let remote = RemoteObject(id: nil, url: nil, verifiedBy: "offset")
        try await scene.store.write { try $0.attempts.finish(first.uploads[0], .verified(remote)) }
        let second = try await scene.stage(Scene.arrival(Scene.file("a", modified: 2)), sha256: sha256)
        #expect(try await scene.store.read { try $0.uploads.find(second.uploads[0]) }?.state == .completed)
        #expect(try await scene.store.read { try $0.assets.find(second.asset) }?.action == .leave)
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
        // A file with other content, or another name, is sent.
        let third = try await scene.stage(Scene.arrival(Scene.file("a", modified: 3)), sha256: noise(32, seed: 9))
        #expect(try await scene.store.read { try $0.uploads.find(third.uploads[0]) }?.state == .queued)
        let other = try await scene.stage(Scene.arrival(Scene.file("b", modified: 1)), sha256: sha256)
        #expect(try await scene.store.read { try $0.uploads.find(other.uploads[0]) }?.state == .queued)
    }

    @Test(
        "with skipped duplicates, the same content from another path is not uploaded either, if long enough",
        arguments: [(Int64(4096), UploadState.completed), (4095, .queued)])
    func duplicates(_ size: Int64, _ expected: UploadState) async throws {
        let scene = try await Scene()
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", size: size)), sha256: sha256)
        _ = try await scene.store.claim("nas", passingOver: [])
        let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
        try await scene.store.write { try $0.attempts.finish(first.uploads[0], .verified(remote)) }
        let outcome = try await scene.store.write {
            try $0.arrivals.record([
                Scene.arrival(Scene.file("b", size: size), to: ["nas", "other"])
            ])
        }
        guard case .recorded(let asset, let uploads)? = outcome.first else { throw Scene.Unexpected() }
        try await scene.store.write {
            try $0.staging.record([StagedCopy(asset: asset, sha256: sha256, skipsDuplicates: true)])
        }
        let copy = try #require(try await scene.store.read { try $0.uploads.find(uploads[0]) })
        #expect(copy.state == expected)
        #expect(copy.remote?.warnings.first?.contains("as a of folder cam") == (expected == .completed ? true : nil))
        #expect(
            try await scene.store.read { try $0.assets.find(asset) }?.action
                == (expected == .completed ? .leave : .delete))
        // It was never sent there.
        #expect(try await scene.store.read { try $0.uploads.find(uploads[1]) }?.state == .queued)
    }
}

extension UploadFilter {
    static var all: UploadFilter {
        var filter = UploadFilter()
        filter.limit = 100_000
        return filter
    }
}

extension Dice {
    fileprivate mutating func outcome(_ clocks: ManualClocks) -> AttemptOutcome {
        let failure = Failure(.transient, code: .noReply, message: "x", at: clocks.wall(), retryable: true)
        return switch next() % 4 {
        case 0: .yielded
        case 1: .refused(failure)
        case 2: .retry(failure, until: clocks.monotonic())
        default: .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset"))
        }
    }
}
