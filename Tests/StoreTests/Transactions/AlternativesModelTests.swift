import Core
import TestKit
import Testing

@testable import Store

/// Random histories of files with alternatives, with a restart after any transaction: the store is closed as it is, and
/// another run opens it.
@Suite("Uploads of which one is enough, in random histories")
struct AlternativesModelTests {
    private static let names = ["nas", "cloud", "tape"]

    /// A store that may be closed and opened again.
    private struct World {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var open: Store?
        var groups: [[String]] = []
        var running: Set<String> = []
        /// Uploads that a person has started again.
        var retried: Set<String> = []
        /// Uploads that another was recorded before, though their destination had verified them.
        var both: Set<String> = []

        var store: Store { get throws { try #require(open) } }
        var ids: [String] { groups.flatMap(\.self) }

        mutating func start() async throws {
            await open?.close()
            running = []
            open = try await Store.open(folder.path.appending("state"), clocks: clocks, sorting: .oldestFirst)
        }

        mutating func add(_ dice: inout Dice) async throws {
            let count = Int.random(in: 2...3, using: &dice)
            let arrival = AlternativesTests.arrival(
                "file \(groups.count)", to: Array(AlternativesModelTests.names.prefix(count)))
            let content = noise(32, seed: UInt64(groups.count + 1))
            let outcomes = try await store.write { try $0.arrivals.record([arrival]) }
            guard case .recorded(let asset, let ids)? = outcomes.first else { return }
            groups.append(ids)
            try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: content)]) }
        }

        mutating func step(_ dice: inout Dice) async throws {
            let id = ids.randomElement(using: &dice)
            switch Int.random(in: 0..<15, using: &dice) {
            case 0, 1: if groups.count < 4 { try await add(&dice) }
            case 2: clocks.advance(by: .seconds(Int.random(in: 1...4000, using: &dice)))
            case 3: _ = try await store.write { try $0.alternatives.endWaits(most: 10) }
            case 4: try await start()
            case 5: if let id { _ = try await store.write { try $0.transitions.cancel([id]) } }
            case 6:
                guard let id else { return }
                let before = try await store.read { try $0.uploads.find(id) }?.ending
                guard before == .failed || before == .cancelled, !running.contains(id) else { return }
                _ = try await store.write { try $0.transitions.retry(id, fromCopy: true) }
                retried.insert(id)
            case 7: if let id { _ = try await store.write { try $0.transitions.expire([id]) } }
            case 8: if let id { _ = try await store.write { try $0.transitions.dismiss([id], .dismissed) } }
            case 9:
                let isPaused = Bool.random(using: &dice)
                if let id { try await store.write { try $0.transitions.pause([id], isPaused) } }
            case 10, 11:
                let name = AlternativesModelTests.names.randomElement(using: &dice) ?? "nas"
                guard let claim = try await store.claim(name, passingOver: []) else { return }
                let id = claim.upload.id
                running.insert(id)
                try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": id]), for: id) }
            default:
                guard let id = running.sorted().randomElement(using: &dice) else { return }
                running.remove(id)
                try await finish(id, &dice)
            }
        }

        private mutating func finish(_ id: String, _ dice: inout Dice) async throws {
            let failure = Failure(
                .permanent, code: .fileTooLarge, message: "as the test says", at: clocks.wall(), retryable: false)
            let outcome: AttemptOutcome =
                switch Int.random(in: 0..<4, using: &dice) {
                case 0: .refused(failure, usesAttempt: false)
                case 1: .yielded
                default: .verified(RemoteObject(id: id, url: nil, verifiedBy: "offset"))
                }
            let state = try await store.write { try $0.attempts.finish(id, outcome) }
            if state == nil, case .verified = outcome { both.insert(id) }
        }

        /// What does not hold.
        func problems() async throws -> [String] {
            let (groups, both, now) = (groups, both, try store.currentRunTime)
            return try await store.read { tx in
                var problems: [String] = []
                func rows(_ sql: String) throws -> [String] {
                    try tx.connection.all(sql) {
                        "\($0.text(0)) \($0.text(1)): \($0.integer(2)), \($0.integer(3)) bytes"
                    }
                }
                let tally = try rows(
                    "SELECT destination, state, standby, standby_bytes FROM tally WHERE standby <> 0 ORDER BY 1, 2")
                let counted = try rows(
                    """
                    SELECT destination, state, count(*), sum(size) FROM upload
                    WHERE standby > 0 AND paused_at IS NULL GROUP BY 1, 2 ORDER BY 1, 2
                    """)
                if tally != counted { problems.append("the tally says \(tally), the uploads \(counted)") }
                for ids in groups {
                    let uploads = try ids.compactMap { try tx.uploads.find($0) }
                    let told = uploads.map { "\($0.destination) \($0.state) \($0.standby.map { $0 - now } ?? 0)" }
                    let verified = uploads.filter { $0.ending == .completed }
                    if verified.count > 1 { problems.append("two are verified: \(told)") }
                    let open = uploads.filter { !$0.state.isTerminal }
                    if !verified.isEmpty, !open.isEmpty {
                        problems.append("one goes on after another is verified: \(told)")
                    }
                    if !verified.isEmpty, uploads.contains(where: { $0.state == .failed }) {
                        problems.append("a failed one keeps the source: \(told)")
                    }
                    if let first = open.first, first.standby != nil { problems.append("all of them wait: \(told)") }
                    for (number, upload) in uploads.enumerated() {
                        // A restart may lose the last minute.
                        if let standby = upload.standby, standby > now + Int64(number) * 3_600_000 + 60_000 {
                            problems.append("waits for too long: \(told)")
                        }
                        if upload.state == .uploading, upload.standby != nil {
                            problems.append("runs on standby: \(told)")
                        }
                    }
                    if !verified.isEmpty, let asset = uploads.first?.asset {
                        let verdict = try tx.releases.verdict(asset)
                        if verdict != .release { problems.append("the verdict is \(verdict): \(told)") }
                    }
                    for id in ids where both.contains(id) {
                        let row = try tx.uploads.row(id)
                        let isSaid = row?.failure?.message.contains("as well") == true
                        if !verified.isEmpty, row?.isSuperfluous == true, !isSaid {
                            problems.append("hides that both have it: \(told)")
                        }
                    }
                }
                return problems
            }
        }
    }

    @Test(
        "one at most counts, none goes on after it, and none waits for an upload that has ended",
        .timeLimit(.minutes(Fuzz.minutes)))
    func histories() async throws {
        try await Fuzz("alternatives", rounds: 40).each(Mutator([[]], words: [])) { round in
            var world = World()
            try await world.start()
            for _ in 0..<60 {
                try await world.step(&round.dice)
                let problems = try await world.problems()
                try round.expect(problems.isEmpty, problems.joined(separator: "\n"))
            }
        }
    }
}
