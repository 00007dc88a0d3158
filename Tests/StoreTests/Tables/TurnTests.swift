import Core
import TestKit
import Testing

@testable import Store

@Suite("Turns of folders")
struct TurnTests {
    private func stage(
        _ scene: Scene, _ folder: String, _ count: Int, from first: Int = 0, size: Int64 = 100, priority: Int = 0
    ) async throws {
        for number in first..<first + count {
            let file = Scene.file(
                "\(folder)\(number)", size: size, modified: 1_000 + Int64(number), folder: folder)
            try await scene.stage(Scene.arrival(file, priority: priority), sha256: noise(32, seed: UInt64(number)))
        }
    }

    private func claims(
        _ scene: Scene, _ count: Int, passingOver folders: [String] = []
    ) async throws -> [String] {
        var names: [String] = []
        for _ in 0..<count {
            if let claim = try await scene.store.claim("nas", passingOver: folders) {
                names.append(claim.upload.name.display)
            }
        }
        return names
    }

    @Test("folders take turns, each in its own order, and a late folder is next")
    func turns() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 50)
        try await stage(scene, "b", 3)
        #expect(try await claims(scene, 5) == ["a0", "b0", "a1", "b1", "a2"])
        try await stage(scene, "c", 1)
        #expect(try await claims(scene, 5) == ["c0", "b2", "a3", "a4", "a5"])
        // A skipped folder keeps its turn.
        try await stage(scene, "b", 2, from: 3)
        #expect(try await claims(scene, 1, passingOver: ["b"]) == ["a6"])
        #expect(try await claims(scene, 3) == ["b3", "a7", "b4"])
    }

    @Test("a claim passes over the given uploads, whatever their place, and those that soon are ready are known")
    func besides() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 4)
        func claim(besides passed: Set<String>, within left: Int64? = nil) async throws -> [Claim] {
            try await scene.store.claim(
                filling: BatchLimits(slots: 1), "nas", from: { _ in true }, besides: passed, within: left)
        }
        var ids: [String] = []
        for number in 0..<3 {
            let next = try #require(try await claim(besides: Set(ids), within: number == 1 ? 1000 : nil).first)
            #expect(next.upload.name.display == "a\(number)")
            ids.append(next.upload.id)
            try await scene.store.write { try $0.attempts.finish(next.upload.id, .yielded) }
        }
        let ready = try await scene.store.read { [ids] in try $0.lists.readyClasses(besides: Set(ids)) }
        #expect(ready.map(\.folder) == ["a"])
        let soon = try await scene.store.read { try $0.lists.classes(readyWithin: .seconds(2), besides: []) }
        #expect(soon.isEmpty)
        let failure = Failure(.transient, code: .http(503), message: "busy", at: scene.clocks.wall(), retryable: true)
        let until = scene.clocks.monotonic().advanced(by: .seconds(1))
        let first = try #require(try await claim(besides: []).first?.upload.id)
        try await scene.store.write { try $0.attempts.finish(first, .held(failure, until: until)) }
        for (passed, folders) in [([], ["a"]), ([first], [])] as [(Set<String>, [String])] {
            let soon = try await scene.store.read {
                try $0.lists.classes(readyWithin: .seconds(2), besides: passed)
            }
            #expect(soon.map(\.folder) == folders)
        }
    }

    @Test("turns continue over restarts, whatever happened in between")
    func restarts() async throws {
        let folder = TemporaryFolder()
        var sent: [String] = []
        var copied: [String] = []
        for run in 0..<6 {
            let store = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .oldestFirst)
            if run == 0 {
                for name in ["a", "b"] {
                    let files = (0..<5).map { Scene.file("\(name)\($0)", modified: Int64($0), folder: name) }
                    _ = try await store.write { tx in try tx.arrivals.record(files.map { Scene.arrival($0) }) }
                }
            }
            // As with a cache with space for one more upload, and a quota that permits one, before the power fails
            // again.
            let next = try #require(
                try await store.read { tx in
                    try tx.staging.waiting(limit: 1, except: [], turns: tx.turns.of(.copies))
                }.first)
            copied.append(next.identity.relative.display)
            try await store.write {
                try $0.staging.record([StagedCopy(asset: next.id, sha256: noise(32, seed: UInt64(run)))])
            }
            // The first run claims no upload, so that there is a choice.
            if run > 0, let claim = try await store.claim("nas", passingOver: []) {
                sent.append(claim.upload.name.display)
                try await store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
            }
            await store.close()
        }
        #expect(copied == ["a0", "b0", "a1", "b1", "a2", "b2"])
        // Each claim was given back: the first upload of the folder whose turn it is runs.
        #expect(sent == ["a0", "b0", "a0", "b0", "a0"])
    }

    @Test("folders take turns for copies as well, within a priority")
    func copies() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        func record(_ folder: String, _ count: Int, priority: Int = 0) async throws {
            let files = (0..<count).map { Scene.file("\(folder)\($0)", modified: Int64($0), folder: folder) }
            _ = try await scene.store.write { tx in
                try tx.arrivals.record(files.map { Scene.arrival($0, priority: priority) })
            }
        }
        func names(_ turns: FolderTurns = FolderTurns()) async throws -> [String] {
            try await scene.store.read { try $0.staging.waiting(limit: 5, except: [], turns: turns) }.map(
                \.identity.relative.display)
        }
        try await record("a", 50)
        try await record("b", 2)
        #expect(try await names() == ["a0", "b0", "a1", "b1", "a2"])
        var turns = FolderTurns()
        turns.recordTurn("a")
        #expect(try await names(turns) == ["b0", "a0", "b1", "a1", "a2"])
        try await record("c", 1, priority: 1)
        #expect(try await names(turns) == ["c0", "b0", "a0", "b1", "a1"])
    }

    @Test("a higher priority is first, whatever the turn")
    func priority() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 3)
        try await stage(scene, "b", 3, priority: 5)
        #expect(try await claims(scene, 5) == ["b0", "b1", "b2", "a0", "a1"])
    }

    @Test("a priority that a person changes counts for claims and copies at once; ended uploads keep theirs")
    func changedPriority() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 3)
        let uploads = try await scene.store.read { try $0.lists.ids(UploadFilter()) }.sorted()
        #expect(try await scene.store.write { try $0.transitions.prioritize([uploads[2]], to: 7) } == [uploads[2]])
        #expect(try await claims(scene, 1) == ["a2"])
        _ = try await scene.store.write { try $0.transitions.prioritize([uploads[2]], to: -1) }
        #expect(try await claims(scene, 1) == ["a0"])
        _ = try await scene.store.write { try $0.transitions.cancel([uploads[0]]) }
        #expect(try await scene.store.write { try $0.transitions.prioritize([uploads[0], "none"], to: 9) } == [])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.priority == 0)

        let files = (0..<3).map { Scene.file("c\($0)", modified: Int64($0), folder: "c") }
        let outcomes = try await scene.store.write { tx in
            try tx.arrivals.record(files.map { Scene.arrival($0, to: ["nas", "other"]) })
        }
        guard case .recorded(_, let ids) = outcomes[2] else {
            Issue.record("the last file was not recorded: \(outcomes[2])")
            return
        }
        func copied() async throws -> [String] {
            try await scene.store.read { try $0.staging.waiting(limit: 3, except: []) }.map(\.identity.relative.display)
        }
        #expect(try await copied() == ["c0", "c1", "c2"])
        // The highest of a file's uploads counts.
        _ = try await scene.store.write { try $0.transitions.prioritize([ids[0]], to: 1) }
        _ = try await scene.store.write { try $0.transitions.prioritize([ids[1]], to: -1) }
        #expect(try await copied() == ["c2", "c0", "c1"])
        _ = try await scene.store.write { try $0.transitions.prioritize([ids[0]], to: -2) }
        #expect(try await copied() == ["c0", "c1", "c2"])
    }

    @Test("files without space at the destination are passed over, and started ones are not")
    func room() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 2, size: 1000)
        try await stage(scene, "a", 2, from: 2, size: 100)
        try await stage(scene, "b", 1, size: 60)
        func claims(_ left: Int64?) async throws -> [String] {
            let slots = BatchLimits(slots: 8)
            let claims = try await scene.store.claim(filling: slots, "nas", from: { _ in true }, within: left)
            for claim in claims { try await scene.store.write { try $0.attempts.finish(claim.upload.id, .yielded) } }
            return claims.map(\.upload.name.display)
        }
        #expect(try await claims(-1) == [])
        #expect(try await claims(59) == [])
        #expect(try await claims(60) == ["b0"])
        #expect(try await claims(160).sorted() == ["a2", "b0"])
        // The first claim leaves less space for the next ones.
        #expect(try await claims(200).sorted() == ["a2", "b0"])
        #expect(try await claims(260).sorted() == ["a2", "a3", "b0"])
        #expect(Set(try await claims(nil)).count == 5)
        #expect(
            try await scene.store.read { tx in try tx.queue.first(waitingFor: "nas", lacking: 999, from: { _ in true })
            }?.upload.name == "a0")
        #expect(
            try await scene.store.read { tx in try tx.queue.first(waitingFor: "nas", lacking: 1000, from: { _ in true })
            } == nil)
        #expect(
            try await scene.store.read { tx in
                try tx.queue.first(waitingFor: "nas", lacking: 999, from: { $0.folder != "a" })
            } == nil)
        let begun = try #require(try await scene.store.claim("nas", passingOver: ["b"]))
        #expect(begun.upload.name == "a0")
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: begun.upload.id) }
        try await scene.store.write { try $0.attempts.finish(begun.upload.id, .yielded) }
        #expect(try await claims(0) == ["a0"])
        #expect(
            try await scene.store.read { tx in
                try tx.queue.first(waitingFor: "nas", lacking: 0, from: { $0.folder != "b" })
            } == nil)
        // The upload was refused when it was about to begin: the remote has nothing of it.
        #expect(try await scene.store.claim("nas", passingOver: ["b"])?.upload.name == "a0")
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(), for: begun.upload.id) }
        try await scene.store.write { try $0.attempts.finish(begun.upload.id, .yielded) }
        #expect(try await claims(0) == [])
    }

    @Test("each destination has its own turns")
    func destinations() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        for folder in ["a", "b"] {
            for number in 0..<2 {
                let file = Scene.file("\(folder)\(number)", modified: Int64(number), folder: folder)
                try await scene.stage(Scene.arrival(file, to: ["nas", "cloud"]))
            }
        }
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.name == "a0")
        #expect(try await scene.store.claim("cloud", passingOver: [])?.upload.name == "a0")
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.name == "b0")
    }

    @Test("a turn is a transfer: one folder fills a bundle, and the next goes to another folder")
    func bundles() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        try await stage(scene, "a", 20)
        try await stage(scene, "b", 1, size: 5_000)
        try await stage(scene, "c", 6)
        func transfers(_ slots: Int) async throws -> [String] {
            try await scene.store.claim(
                filling: BatchLimits(slots: slots, bundling: Bundling(largest: 1_000, files: 4, bytes: 4_000)), "nas",
                from: { _ in true }
            ).map(\.upload.name.display)
        }
        #expect(try await transfers(1) == ["a0", "a1", "a2", "a3"])
        // A bundle with space in it takes the next uploads.
        #expect(try await transfers(3) == ["b0", "c0", "c1", "c2", "c3", "a4", "a5", "a6", "a7"])
        #expect(try await transfers(2) == ["c4", "c5", "a8", "a9", "a10", "a11", "a12", "a13"])
    }

    @Test("a folder's order precedes a destination's, and that the global one, also when it changes")
    func orders() async throws {
        let sorting = UploadSort(.oldestFirst, destinations: ["nas": .newestFirst], folders: ["a": .largestFirst])
        let scene = try await Scene(sorting: sorting)
        for folder in ["a", "b"] {
            for (number, size) in [Int64(300), 500, 400].enumerated() {
                let file = Scene.file("\(folder)\(number)", size: size, modified: Int64(number), folder: folder)
                try await scene.stage(Scene.arrival(file, to: ["nas", "cloud"]))
            }
        }
        func order(_ destination: String, _ folder: String) async throws -> [String] {
            var claims: [Claim] = []
            while let claim = try await scene.store.claim(destination, passingOver: [folder == "a" ? "b" : "a"]) {
                claims.append(claim)
            }
            for claim in claims { try await scene.store.write { try $0.attempts.finish(claim.upload.id, .yielded) } }
            return claims.map(\.upload.name.display)
        }
        #expect(try await order("nas", "a") == ["a1", "a2", "a0"])
        #expect(try await order("cloud", "a") == ["a1", "a2", "a0"])
        #expect(try await order("nas", "b") == ["b2", "b1", "b0"])
        #expect(try await order("cloud", "b") == ["b0", "b1", "b2"])
        try await scene.store.sort(by: UploadSort(.newestFirst, folders: ["b": .smallestFirst, "it's": .newestFirst]))
        #expect(try await order("nas", "a") == ["a2", "a1", "a0"])
        #expect(try await order("nas", "b") == ["b0", "b2", "b1"])
        #expect(try await order("cloud", "b") == ["b0", "b2", "b1"])
    }

    @Test("in mixed order small files and all others take turns, over a restart too, and folders still take theirs")
    func mixed() async throws {
        let scene = try await Scene(sorting: UploadSort(.newestFirst, folders: ["a": .mixed]))
        _ = try await scene.store.ask([UploadOrdering.isSmall])
        // The newest are large: without turns the small ones would be last.
        try await stage(scene, "a", 3, size: 15_999_999)
        try await stage(scene, "a", 4, from: 10, size: 16_000_000)
        #expect(try await claims(scene, 3) == ["a13", "a2", "a12"])
        let turns = try await scene.store.read { try $0.turns.of(.transfers("nas")) }
        #expect(turns.last(of: .other, in: "a") > turns.last(of: .small, in: "a"))
        try await stage(scene, "b", 2)
        #expect(try await claims(scene, 4) == ["b1", "a1", "b0", "a11"])
        #expect(try await claims(scene, 3) == ["a0", "a10"])
    }

    @Test("in mixed order a bundle takes the small files together, and the next turn is that of a large one")
    func mixedBundle() async throws {
        let scene = try await Scene(sorting: UploadSort(.mixed))
        _ = try await scene.store.ask([UploadOrdering.isSmall])
        try await stage(scene, "a", 6)
        try await stage(scene, "a", 2, from: 10, size: 20_000_000)
        func transfer() async throws -> [String] {
            try await scene.store.claim(
                filling: BatchLimits(slots: 1, bundling: Bundling(largest: 1_000, files: 4, bytes: 4_000)), "nas",
                from: { _ in true }
            ).map(\.upload.name.display)
        }
        #expect(try await transfer() == ["a11"])
        #expect(try await transfer() == ["a5", "a4", "a3", "a2"])
        #expect(try await transfer() == ["a10"])
        #expect(try await transfer() == ["a1", "a0"])
    }

    @Test("in mixed order small files and all others are copied in turn")
    func mixedCopies() async throws {
        let scene = try await Scene(sorting: .init(.newestFirst, destinations: ["nas": .mixed]))
        var names: [Int64: String] = [:]
        for (name, size) in [("s0", Int64(5)), ("s1", 6), ("l0", 16_000_000), ("l1", 17_000_000), ("l2", 18_000_000)] {
            let file = Scene.file(name, size: size, modified: Int64(1_000 + names.count), folder: "a")
            let results = try await scene.store.write { try $0.arrivals.record([Scene.arrival(file)]) }
            guard case .recorded(let asset, _)? = results.first else { throw Scene.Unexpected() }
            names[asset] = name
        }
        func next(_ count: Int, _ except: Set<Int64> = []) async throws -> [Int64] {
            try await scene.store.read {
                try $0.staging.waiting(limit: count, except: except, turns: try $0.turns.of(.copies)).map(\.id)
            }
        }
        let all = try await next(10)
        #expect(all.map { names[$0] } == ["l2", "s1", "l1", "s0", "l0"])
        let first = try #require(all.first)
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: first, sha256: noise(32))]) }
        #expect(try await next(2).map { names[$0] } == ["s1", "l1"])
    }

    @Test("one claim queries each folder once, and after a file only its own folder, however many uploads wait")
    func cost() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        for folder in ["a", "b", "c", "d"] { try await stage(scene, folder, 40) }
        _ = await scene.store.statementCosts(.runs)
        let claims = try await scene.store.claim(
            filling: BatchLimits(slots: 1, bundling: Bundling(largest: 1_000, files: 32, bytes: 40_000)), "nas",
            from: { _ in true })
        #expect(claims.count == 32)
        let asked = await scene.store.statementCosts(.runs).filter { $0.key.contains("INDEXED BY upload_next") }
        // Four outside the transaction and four in it.
        #expect(asked.values.reduce(0, +) == 8 + 32)
    }
}
