import Core
import TestKit
import Testing

@testable import Store

@Suite("Uploads of which one is enough")
struct AlternativesTests {
    private static let remote = RemoteObject(id: "r", url: nil, verifiedBy: "offset")
    private static let hour = Duration.seconds(3600)

    static func arrival(
        _ name: String, to destinations: [String], plain: [String] = [], modified: Int64 = 1_000
    ) -> NewAsset {
        var arrival = Scene.arrival(Scene.file(name, size: 5000, modified: modified), to: destinations + plain)
        for index in destinations.indices {
            arrival.orders[index].choice = .init(number: 0, wait: hour * index)
        }
        return arrival
    }

    private func claim(_ scene: Scene, _ destination: String) async throws -> String? {
        try await scene.store.claim(destination, passingOver: [])?.upload.id
    }

    private func states(_ scene: Scene, _ ids: [String]) async throws -> [UploadState?] {
        try await scene.store.read { tx in try ids.map { try tx.uploads.find($0)?.state } }
    }

    private func endWaits(_ scene: Scene) async throws -> [String] {
        try await scene.store.write { try $0.alternatives.endWaits(most: 10) }.map(\.upload.id)
    }

    private func begin(_ scene: Scene, _ id: String) async throws {
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": id]), for: id) }
    }

    private func events(_ scene: Scene, of id: String) async throws -> [(EventType, [String: String])] {
        try await scene.store.read { try $0.events.list(after: 0, limit: 1000) }
            .filter { $0.upload == id }.map { ($0.type, $0.detail) }
    }

    @Test("the second waits until its time, however the wall clock is set, and only one may go before")
    func waits() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud", "tape"])).uploads
        #expect(try await claim(scene, "cloud") == nil)
        #expect(try await scene.store.read { try $0.alternatives.nextWait() } == Self.hour)
        scene.clocks.step(by: Self.hour * 100)
        #expect(try await endWaits(scene).isEmpty)
        scene.clocks.advance(by: Self.hour)
        #expect(try await endWaits(scene) == [ids[1]])
        #expect(try await scene.store.read { try $0.alternatives.nextWait() } == Self.hour)
        #expect(try await claim(scene, "cloud") == ids[1])
        #expect(try await claim(scene, "tape") == nil)
        #expect(try await claim(scene, "nas") == ids[0])
        let told = try await events(scene, of: ids[1]).last { $0.0 == .state && $0.1[.reason] == "alternative" }
        #expect(told?.1[.note] == "not verified in time at nas")
    }

    @Test("an upload on standby cannot be claimed by its id")
    func byID() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"])).uploads
        let claimed = try await scene.store.claim(only: ids[1], skippingDuplicatesOf: [], reserving: { _ in nil })
        #expect(claimed == nil)
    }

    @Test("the first that is verified ends the others in the same transaction, and the source is released then")
    func superseded() async throws {
        let scene = try await Scene()
        let (asset, ids) = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"], plain: ["tape"]))
        _ = try await claim(scene, "nas")
        try await scene.store.write { try $0.attempts.finish(ids[0], .verified(Self.remote)) }
        #expect(try await states(scene, ids) == [.completed, .cancelled, .queued])
        let row = try #require(try await scene.store.read { try $0.uploads.row(ids[1]) })
        #expect(row.isSuperfluous && row.upload.standby == nil)
        #expect(row.failure?.message.hasPrefix("superseded by nas: upload \(ids[0])") == true)
        #expect(try await events(scene, of: ids[1]).last?.1[.reason] == "superseded")
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 10) }.isEmpty)
        _ = try await claim(scene, "tape")
        try await scene.store.write { try $0.attempts.finish(ids[2], .verified(Self.remote)) }
        let due = try await scene.store.read { try $0.releases.releasable(limit: 10) }
        #expect(due.map(\.asset.id) == [asset] && due.map(\.verdict) == [.release])
    }

    @Test("of two that run, the one that is recorded first counts; that the other arrived too is said and not hidden")
    func both() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"])).uploads
        scene.clocks.advance(by: Self.hour)
        _ = try await endWaits(scene)
        for (name, id) in zip(["nas", "cloud"], ids) {
            #expect(try await claim(scene, name) == id)
            try await begin(scene, id)
        }
        try await scene.store.write { try $0.attempts.finish(ids[1], .verified(Self.remote)) }
        let changes = try await scene.store.write { tx in
            try tx.attempts.finish(ids[0], .verified(RemoteObject(id: "n", url: "u", verifiedBy: "offset")))
        }
        #expect(changes == nil)
        #expect(try await states(scene, ids) == [.cancelled, .completed])
        let left = try await scene.store.read { try $0.remoteDeletions.all() }
        #expect(left.map(\.upload) == [ids[0]] && left.first?.checkpoint.isFinished == true)
        let told = try await events(scene, of: ids[0]).last
        #expect(told?.0 == .alsoVerified && told?.1[.url] == "u" && told?.1[.note] == "superseded by cloud")
        let row = try #require(try await scene.store.read { try $0.uploads.row(ids[0]) })
        #expect(row.failure?.message.contains("arrived at nas as well") == true)
        let winner = try #require(try await scene.store.read { try $0.uploads.find(ids[1]) })
        #expect(winner.remote?.warnings.first?.contains("arrived at nas as well") == true)
    }

    @Test("it is said when all of the file had been sent to the other destination, as before a crash")
    func wholeAtBoth() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"])).uploads
        _ = try await claim(scene, "nas")
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: ids[0], acked: 5000) }
        try await scene.store.write { try $0.attempts.finish(ids[0], .yielded) }
        scene.clocks.advance(by: Self.hour)
        _ = try await endWaits(scene)
        _ = try await claim(scene, "cloud")
        try await scene.store.write { try $0.attempts.finish(ids[1], .verified(Self.remote)) }
        let row = try #require(try await scene.store.read { try $0.uploads.row(ids[0]) })
        #expect(row.failure?.message.hasSuffix("all of it had been sent to nas too, and may be there") == true)
    }

    @Test(
        "the next goes at once when the one before it has failed or was cancelled, and a failed one ends with the others"
    )
    func failedFirst() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud", "tape"])).uploads
        _ = try await claim(scene, "nas")
        let failure = Failure(
            .permanent, code: .fileTooLarge, message: "too large", at: WallTime(milliseconds: 0), retryable: false)
        try await scene.store.write { try $0.attempts.finish(ids[0], .refused(failure, usesAttempt: false)) }
        #expect(try await claim(scene, "cloud") == ids[1])
        #expect(try await claim(scene, "tape") == nil)
        _ = try await scene.store.write { try $0.transitions.cancel([ids[1]]) }
        #expect(try await claim(scene, "tape") == ids[2])
        try await scene.store.write { try $0.attempts.finish(ids[2], .verified(Self.remote)) }
        #expect(try await states(scene, ids) == [.cancelled, .cancelled, .completed])
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 1) }.first?.verdict == .release)
        #expect(try await scene.store.write { try $0.transitions.retry(ids[0], fromCopy: true) } == .completed)
        #expect(try await states(scene, ids).first == .cancelled)
    }

    @Test("a failed one that was dismissed keeps no source when another destination has the file")
    func dismissed() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"])).uploads
        _ = try await claim(scene, "nas")
        let failure = Failure(
            .permanent, code: .fileTooLarge, message: "too large", at: WallTime(milliseconds: 0), retryable: false)
        try await scene.store.write { try $0.attempts.finish(ids[0], .refused(failure, usesAttempt: false)) }
        _ = try await scene.store.write { try $0.transitions.dismiss([ids[0]], .dismissed) }
        _ = try await claim(scene, "cloud")
        try await scene.store.write { try $0.attempts.finish(ids[1], .verified(Self.remote)) }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 1) }.first?.verdict == .release)
    }

    @Test("content that the second destination has from this path already counts, and nothing is sent to the first")
    func repeated() async throws {
        let scene = try await Scene()
        let content = noise(32)
        let old = try await scene.stage(Scene.arrival(Scene.file("a", size: 5000), to: ["cloud"]), sha256: content)
        _ = try await claim(scene, "cloud")
        try await scene.store.write { try $0.attempts.finish(old.uploads[0], .verified(Self.remote)) }
        let arrival = Self.arrival("a", to: ["nas", "cloud"], modified: 2_000)
        let ids = try await scene.stage(arrival, sha256: content).uploads
        #expect(try await states(scene, ids) == [.cancelled, .completed])
    }

    @Test("plans and lists count uploads on standby apart")
    func counted() async throws {
        let scene = try await Scene()
        let ids = try await scene.stage(Self.arrival("a", to: ["nas", "cloud"])).uploads
        _ = try await scene.store.write { try $0.arrivals.record([Self.arrival("b", to: ["nas", "cloud"])]) }
        let cloud = try #require(
            try await scene.store.read { try $0.backlog.classes() }.first { $0.destination == "cloud" })
        #expect(cloud.standby.uploads == Spending(bytes: 10_000, files: 2) && cloud.standby.wait == Self.hour)
        #expect(cloud.first.isEmpty && cloud.rest == .none && cloud.unstaged == .none)
        var filter = UploadFilter()
        filter.isHeld = true
        let held = try await scene.store.read { [filter] tx in try tx.lists.ids(filter) }
        #expect(held == [ids[1]])
        #expect(try await scene.store.read { try $0.lists.readyClasses() }.map(\.destination) == ["nas"])
    }

    @Test("a rebuild records no upload to a destination that is not needed any more")
    func restored() async throws {
        let scene = try await Scene()
        let file = RestoredFile(
            arrival: Self.arrival("a", to: ["nas", "cloud"]), copy: 1, sha256: noise(32),
            uploads: [.init(id: nil, knowledge: .toSend), .init(id: nil, knowledge: .done(Self.remote))])
        let assets = try await scene.store.write { try $0.restoredFiles.record([file]) }
        let uploads = try await scene.store.read { tx in try assets.flatMap { try tx.uploads.of($0) } }
        #expect(uploads.map(\.destination) == ["cloud"] && uploads.map(\.state) == [.completed])
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 1) }.first?.verdict == .release)
    }

    @Test("a claim costs the same, however many uploads wait for another destination")
    func cost() async throws {
        func steps(_ files: Int) async throws -> Int {
            let scene = try await Scene()
            let arrivals = (0..<files).map { Self.arrival("\($0)", to: ["nas", "cloud"]) }
            let assets = try await scene.store.write { try $0.arrivals.record(arrivals) }.compactMap(\.asset)
            try await scene.store.write { tx in
                try tx.staging.record(assets.map { StagedCopy(asset: $0, sha256: noise(32, seed: UInt64($0))) })
            }
            _ = await scene.store.statementCosts()
            #expect(try await claim(scene, "cloud") == nil)
            #expect(try await scene.store.read { try $0.alternatives.nextWait() } == Self.hour)
            return await scene.store.statementCosts().values.reduce(0, +)
        }
        #expect(try await steps(400) == steps(4))
    }
}
