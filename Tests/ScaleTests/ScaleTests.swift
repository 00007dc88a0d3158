import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Benchmarks
@testable import Store

/// A state folder with a backlog, opened like the daemon does.
private struct Scene {
    let folder = TemporaryFolder()
    let store: Store

    /// - Parameters:
    ///   - asksFiles: Whether conditions tell the files apart by eight questions.
    ///   - waits: Whether all uploads to ``standby`` wait for another destination.
    init(_ uploads: Int, asksFiles: Bool = false, waits: Bool = false) async throws {
        let state = folder.path.appending("state")
        try await Backlog(uploads: uploads).fill(state)
        if asksFiles { _ = try await Backlog.ask(state) }
        store = try await Store.open(state, clocks: SystemClocks(), sorting: .newestFirst)
        guard waits else { return }
        try await store.write { tx in
            try tx.connection.run(
                """
                UPDATE upload SET choice = 0, standby = 1000000000000 WHERE destination = ?1
                AND state IN ('staging', 'queued')
                """, [.text(Self.standby)])
        }
    }

    static let standby = Backlog.destinations[0]

    /// All queries and changes of a running daemon, each with its name.
    func day(_ body: (String) async throws -> Void = { _ in }) async throws {
        func part(_ name: String, _ work: () async throws -> Void) async throws {
            try await work()
            try await body(name)
        }
        let (folder, destination) = (Backlog.folders[1], Backlog.destinations[1])
        try await part("status") {
            _ = try await store.read { try $0.lists.tallies() }
            _ = try await store.read { try $0.lists.classes() }
            _ = try await store.read { try $0.staging.totalBytes() }
            _ = try await store.read { try $0.pauses.all() }
            _ = try await store.read { try $0.lists.waitingClasses() }
            #expect(try await store.read { try $0.lists.oldestOngoing() }.count == Backlog.destinations.count)
            _ = try await store.read {
                try $0.ledger.spent(since: WallTime(milliseconds: 1_795_100_000_000), destination: destination)
            }
            _ = try await store.read { try $0.waits.next(after: MonotonicTime(nanoseconds: 0)) }
        }
        try await part("lists") { try await lists(folder, destination) }
        let any = try #require(try await store.rows(Self.filter { $0.limit = 1 }).first)
        try await part("show") {
            #expect(try await store.read { try $0.uploads.row(any.upload.id) } != nil)
            #expect(
                try await store.read { try $0.uploads.rows(idPrefix: String(any.upload.id.prefix(20)), limit: 6) }.count
                    > 0)
            #expect(try await store.read { try $0.uploads.rows(path: any.asset.path.shown) }.count == 1)
            #expect(
                try await store.read { try $0.uploads.rows(named: any.asset.identity.relative.name, limit: 1000) }.count
                    == 1)
            #expect(try await store.read { try $0.uploads.rows(named: "nowhere.mp4", limit: 1000) }.isEmpty)
            #expect(try await store.read { try $0.uploads.rows(key: "no such key") }.isEmpty)
            _ = try await store.read { try $0.failures.of(any.upload.id) }
            let waiting = try #require(try await store.rows(Self.filter { $0.states = [.queued] }).first)
            _ = try await store.read { try $0.uploads.duplicate(waiting.upload, sha256: noise(32)) }
        }
        try await part("scan") { try await scan() }
        try await part("claim") {
            let claim = try #require(try await store.claim(destination, passingOver: []))
            try await store.writeHeld {
                try $0.checkpoints.record(Checkpoint(["url": "x"]), for: claim.upload.id, acked: 1)
            }
            try await store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
            // Three of four folders are skipped, and their uploads come before the remaining ones.
            _ = try await store.claim(
                destination, passingOver: Array(Backlog.folders.dropFirst()), skippingDuplicatesOf: Backlog.folders)
            #expect(try await store.claim(destination, passingOver: Backlog.folders) == nil)
        }
        try await part("alternatives") {
            _ = try await store.read { try $0.alternatives.standby() }
            _ = try await store.read { try $0.alternatives.nextWait() }
            _ = try await store.write { try $0.alternatives.endWaits(most: 200) }
            _ = try await store.read { try $0.lists.readyClasses() }
            _ = try await store.rows(Self.filter { $0.isHeld = true })
            if let claim = try await store.claim(Self.standby, passingOver: []) {
                try await store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
            }
        }
        try await part("complete") {
            let claim = try #require(try await store.claim(destination, passingOver: []))
            try await store.write {
                try $0.attempts.finish(
                    claim.upload.id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
            }
            #expect(try await store.read { try $0.releases.releasable(limit: 16) }.count == 1)
            _ = try await store.write {
                try $0.releases.begin(claim.asset.id, token: ReleaseToken(random: [1, 2, 3, 4, 5, 6, 7, 8]))
            }
            try await store.write { try $0.releases.finish(claim.asset.id, .kept) }
        }
        try await part("room") {
            let slots = BatchLimits(slots: 1)
            _ = try await store.read { tx in
                try tx.queue.first(waitingFor: destination, lacking: -1, from: { _ in true })
            }
            // Uploads that were begun there run anyway.
            for claim in try await store.claim(filling: slots, destination, from: { _ in true }, within: -1) {
                #expect(claim.checkpoint != nil)
                try await store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
            }
        }
        try await part("failures") {
            let claim = try #require(try await store.claim(destination, passingOver: []))
            let failure = Failure(
                .local, code: .connectionLost, message: "reset", at: WallTime(milliseconds: 1), retryable: true)
            try await store.write {
                try $0.attempts.finish(
                    claim.upload.id, .retry(failure, until: SystemClocks().monotonic().advanced(by: .seconds(3600))))
            }
            #expect(try await store.read { try $0.waits.next(after: MonotonicTime(nanoseconds: 0)) } != nil)
            _ = try await store.rows(Self.filter { $0.isHeld = true })
            try await store.write { try $0.waits.end(for: destination) }
        }
        try await part("arrival") { try await arrive() }
        try await part("verbs") {
            let some = try await store.read { tx in
                try tx.lists.ids(
                    Self.filter {
                        $0.states = [.queued]; $0.limit = 5
                    })
            }
            try await store.write { try $0.transitions.pause(some, true) }
            #expect(try await store.rows(Self.filter { $0.isHeld = true }).count >= 5)
            try await store.write { try $0.transitions.pause(some, false) }
            _ = try await store.write { try $0.transitions.cancel(some) }
            _ = try await store.write { try $0.transitions.retry(some[0], fromCopy: true) }
        }
        try await part("upkeep") {
            _ = try await store.read { try $0.tombstones.old(limit: 500) }
            _ = try await store.read { try $0.staging.unsettled() }
            _ = try await store.rows(Self.filter { $0.isUnsettled = true })
            _ = try await store.read { try $0.remoteDeletions.all() }
            _ = try await store.read { try $0.assets.owned([1, 2, 3, 1_000_000_000]) }
            let last = await store.seq
            _ = try await store.read { try $0.events.list(after: last - 10, limit: 200) }
            _ = try await store.read { try $0.events.oldest() }
        }
    }

    static func filter(_ set: (inout UploadFilter) -> Void) -> UploadFilter {
        var filter = UploadFilter()
        set(&filter)
        return filter
    }

    private func lists(_ folder: String, _ destination: String) async throws {
        #expect(try await store.rows(UploadFilter()).count == 100)
        for state in UploadState.allCases { _ = try await store.rows(Self.filter { $0.states = [state] }) }
        let ongoing: [UploadState] = [.staging, .queued, .uploading]
        let middle = try await store.read { tx in try tx.lists.ids(Self.filter { $0.states = [.failed] }) }.last
        for change: (inout UploadFilter) -> Void in [
            { $0.states = ongoing }, { $0.folder = folder }, { $0.destination = destination },
            {
                $0.folder = folder; $0.destination = destination; $0.states = [.failed]
            },
            { $0.after = middle },
            {
                $0.after = middle; $0.states = ongoing; $0.folder = folder
            },
        ] { _ = try await store.rows(Self.filter(change)) }
    }

    /// Known files and new ones, in the query of a scan.
    private func scan() async throws {
        let known = try await store.rows(Self.filter { $0.limit = 50 }).map(\.asset.identity)
        #expect(try await store.areKnown(known).allSatisfy { $0 })
        let new = known.map { identity in
            var identity = identity
            identity.relative = FilePath("new/\(identity.relative)")
            return identity
        }
        #expect(try await store.areKnown(new).allSatisfy { !$0 })
    }

    private func arrive() async throws {
        let status = FileStatus(device: 1, inode: 5, size: 9_000, modified: 5, changed: 5, born: nil, mode: 0o100644)
        let name = FilePath("arrives-\(hexadecimal(Random.bytes(8))).mp4")
        let folder = Backlog.folders[0]
        let file = SettledFile(
            folder: folder, root: "/srv/cameras/front-door", relative: name, status: status,
            identity: FileIdentity(
                folder: folder, relative: name, size: 9_000, modified: 5, inode: 5, born: nil, fileSystem: nil),
            settledBy: .lease)
        let order = NewAsset.PlannedUpload(
            destination: Backlog.destinations[0], name: name, mediaType: "video/mp4", key: name.text, context: [:],
            metadata: [:])
        let arrival = NewAsset(file: file, action: .keep, priority: 99, orders: [order])
        guard case .recorded(let asset, _)? = try await store.write({ try $0.arrivals.record([arrival]) }).first else {
            Issue.record("the upload was not recorded")
            return
        }
        #expect(try await store.read { try $0.staging.waiting(limit: 64, except: []) }.first?.id == asset)
        #expect(try await store.read { try $0.staging.waiting(limit: 64, except: [], exports: true) }.isEmpty)
        try await store.write {
            try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32), skipsDuplicates: true)])
        }
    }
}

@Suite("A long backlog")
struct ScaleTests {
    @Test("the generated backlog matches the store's own counters")
    func backlog() async throws {
        let scene = try await Scene(1_000)
        var counted: [UploadState: Int] = [:]
        for tally in try await scene.store.read({ try $0.lists.tallies() }) {
            counted[tally.state, default: 0] += tally.uploads
        }
        #expect(
            counted.filter { $0.value > 0 } == [
                .queued: 920, .staging: 20, .cancelled: 10, .failed: 10, .completed: 40,
            ])
        #expect(try await scene.store.read { try $0.lists.classes() }.map(\.upload).count >= 12)
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 10) }.isEmpty)
    }

    @Test("the backlog's files on disk match the store")
    func files() async throws {
        let folder = TemporaryFolder()
        var backlog = Backlog(uploads: 40)
        backlog.watched = folder.path.appending("watched")
        backlog.staging = folder.path.appending("staging")
        backlog.makesFiles = true
        try await backlog.fill(folder.path.appending("state"))
        let store = try await Store.open(
            folder.path.appending("state"), clocks: SystemClocks(), sorting: .newestFirst)
        for row in try await store.rows(UploadFilter()) {
            #expect(try FileStatus(at: row.asset.path.shown).modified == row.asset.identity.modified)
            let copy = try FileStatus.ifPresent(at: folder.path.appending("staging").appending(row.asset.stagedName))
            #expect((copy?.size == row.asset.size) == (row.asset.state == .staged))
        }
    }

    @Test("no statement of a running daemon scans a growing table")
    func plans() async throws {
        let scene = try await Scene(1_000)
        try await scene.day()
        let large = ["upload", "asset", "tombstone", "history", "event", "failure", "checkpoint", "theirs", "other"]
        let plans = try await scene.store.plans()
        #expect(plans.count > 50)
        for (sql, steps) in plans {
            for step in steps {
                let words = step.split(separator: " ")
                let scans =
                    words.first == "SCAN" && words.count > 1 && large.contains(String(words[1]))
                    && !Self.wholeIndexes.contains(step)
                #expect(!scans, "\(step)\nin \(sql)")
            }
        }
    }

    /// Indexes that contain only the wanted rows, in their order, in statements with a limit.
    private static let wholeIndexes: Set<String> = [
        "SCAN asset USING INDEX asset_unsettled",
        "SCAN asset USING COVERING INDEX asset_unsettled",
    ]

    @Test("four times the uploads cost no more steps, for any query")
    func steps() async throws {
        try await compare(3_000, 12_000)
    }

    @Test("four times the uploads that wait for another destination cost no more steps, for any query")
    func alternatives() async throws {
        let scene = try await Scene(1_000, waits: true)
        #expect(try await scene.store.claim(Scene.standby, passingOver: []) == nil)
        try await compare(3_000, 12_000, waits: true)
    }

    @Test(
        "with eight questions about files, four times the uploads cost no more steps, for any query",
        .enabled(if: getenv("SLOW_TESTS") != nil, "takes minutes: make test-long"))
    func classes() async throws {
        // Enough that each page of each class is full.
        try await compare(30_000, 120_000, asksFiles: true)
    }

    @Test(
        "a million uploads cost no more steps than twelve thousand",
        .enabled(if: getenv("SLOW_TESTS") != nil, "takes minutes: make test-long"))
    func million() async throws {
        // Enough that each page of a list is full.
        try await compare(12_000, 1_000_000)
    }

    private func compare(
        _ few: Int, _ many: Int, asksFiles: Bool = false, waits: Bool = false
    ) async throws {
        var costs: [[String: Int]] = []
        for uploads in [few, many] {
            let scene = try await Scene(uploads, asksFiles: asksFiles, waits: waits)
            _ = await scene.store.statementCosts()
            var cost: [String: Int] = [:]
            try await scene.day { part in
                for (sql, steps) in await scene.store.statementCosts() where steps > 0 {
                    cost[part + ": " + sql] = steps
                }
            }
            costs.append(cost)
        }
        for (sql, steps) in costs[1] {
            // Twice the steps are allowed, because there are more full pages of a list; a table that is read completely
            // is far above that.
            let before = costs[0][sql] ?? 0
            #expect(steps <= 2 * before + 2_000, "\(before) steps became \(steps) in \(sql)")
        }
    }
}
