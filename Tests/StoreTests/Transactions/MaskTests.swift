import Core
import TestKit
import Testing

@testable import Store

@Suite("Masks of uploads")
struct MaskTests {
    private func questions(_ scene: Scene, _ list: FilePredicate...) async throws -> FileQuestions {
        try await scene.store.ask(list)
    }

    private func upload(_ scene: Scene, _ id: String) async throws -> UploadRecord {
        try #require(try await scene.store.read { try $0.uploads.find(id) })
    }

    private func stage(_ scene: Scene, _ name: String, size: Int64, folder: String = "cam") async throws -> String {
        let number = Int64(name.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFFFF)
        let file = Scene.file(name, size: size, modified: number, folder: folder)
        let sha256 = noise(32, seed: UInt64(number))
        return try #require(try await scene.stage(Scene.arrival(file), sha256: sha256).uploads.first)
    }

    @Test("a file is asked when it is recorded, and the length of a recording when it is staged")
    func staged() async throws {
        let scene = try await Scene()
        let questions = try await questions(scene, .largerThan(50), .longerThan(10_000))
        let arrival = Scene.arrival(Scene.file("a.mp4", size: 100))
        guard
            case .recorded(let asset, let ids)? = try await scene.store.write({ try $0.arrivals.record([arrival]) })
                .first,
            let id = ids.first
        else { throw Scene.Unexpected() }
        #expect(questions.answers(in: try await upload(scene, id).mask) == .known([.largerThan(50): true]))
        try await scene.store.write {
            try $0.staging.record(
                [StagedCopy(asset: asset, sha256: noise(32))], facts: [asset: MediaFacts(duration: 12_000)])
        }
        #expect(
            questions.answers(in: try await upload(scene, id).mask)
                == .known([.largerThan(50): true, .longerThan(10_000): true]))
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        #expect(claim.file == FileFacts(size: 100, kind: .video, duration: 12_000))
    }

    @Test("after a change of the questions, waiting uploads are asked in batches; until then they are unknown")
    func reload() async throws {
        let scene = try await Scene()
        var ids: [String] = []
        for number in 0..<5 { ids.append(try await stage(scene, "f\(number)", size: Int64(number * 10))) }
        for id in ids { #expect(try await upload(scene, id).mask == .unknown) }
        let questions = try await questions(scene, .largerThan(25))
        for expected in [2, 4, 5] {
            #expect(try await scene.store.askWaitingFiles(2))
            var known = 0
            for id in ids where questions.areAnswered(by: try await upload(scene, id).mask) { known += 1 }
            #expect(known == expected)
        }
        #expect(try await !scene.store.askWaitingFiles(2))
        let classes = try await scene.store.read { try $0.lists.waitingClasses() }
        #expect(Set(classes.map(\.upload.mask)).count == 2 && Set(classes.map(\.count)) == [2, 3])
        // Fewer questions are answered already.
        let more = try await self.questions(scene, .largerThan(25), .smallerThan(5))
        #expect(more.number == questions.number + 1)
        #expect(try await self.questions(scene, .smallerThan(5)) == more)
        #expect(try await self.questions(scene) == more)
    }

    @Test("the questions are remembered over a restart")
    func restart() async throws {
        let scene = try await Scene()
        let questions = try await questions(scene, .largerThan(25), .kind([.photo, .audio]))
        await scene.store.close()
        let again = try await Store.open(
            scene.folder.path.appending("state"), clocks: scene.clocks, sorting: .newestFirst)
        #expect(try await again.ask([.largerThan(25)]) == questions)
        await again.close()
    }

    @Test("only files of an open class are claimed, and all classes of a folder together are claimed in its order")
    func claims() async throws {
        let scene = try await Scene(sorting: .smallestFirst)
        let questions = try await questions(scene, .largerThan(25), .smallerThan(15))
        for size in [40, 10, 30, 20, 5] { _ = try await stage(scene, "s\(size)", size: Int64(size)) }
        func claim(_ isOpen: @escaping @Sendable (FileAnswers) -> Bool) async throws -> String? {
            let claims = try await scene.store.claim(
                filling: BatchLimits(slots: 1), "nas", from: { isOpen(questions.answers(in: $0.mask)) })
            return claims.first?.upload.name.display
        }
        let large = FileAnswers.known([.largerThan(25): true, .smallerThan(15): false])
        #expect(try await claim { $0 == large } == "s30")
        var order: [String] = []
        while let next = try await claim({ _ in true }) { order.append(next) }
        #expect(order == ["s5", "s10", "s20", "s40"])
    }

    @Test("the tally of each class agrees with the uploads, whatever happens to them", arguments: 1...40)
    func tally(_ seed: Int) async throws {
        var dice = Dice(seed: UInt64(seed))
        let scene = try await Scene()
        for round in 0..<12 {
            if Int.random(in: 0...2, using: &dice) == 0 {
                _ = try await scene.store.ask([.largerThan(Int64.random(in: 0...50, using: &dice))])
            }
            if Bool.random(using: &dice) { _ = try await scene.store.askWaitingFiles(3) }
            let size = Int64.random(in: 0...50, using: &dice)
            _ = try await stage(scene, "f\(round)", size: size, folder: Bool.random(using: &dice) ? "cam" : "door")
            if Bool.random(using: &dice), let claim = try await scene.store.claim("nas", passingOver: []) {
                let id = claim.upload.id
                if Bool.random(using: &dice) {
                    try await scene.store.write { try $0.attempts.finish(id, .yielded) }
                } else {
                    _ = try await scene.store.write { try $0.transitions.cancel([id]) }
                }
            }
            let (tally, counted) = try await scene.store.read { tx in
                func rows(_ sql: String) throws -> [String] {
                    try tx.connection.all(sql) { row in
                        "\(row.text(0)) \(row.text(1)) \(row.text(2)) \(row.integer(3)) \(row.integer(4))"
                    }
                }
                return (
                    try rows(
                        "SELECT folder, state, mask, uploads, bytes FROM tally WHERE uploads > 0 ORDER BY 1, 2, 3"),
                    try rows(
                        """
                        SELECT folder, state, mask, count(*), sum(size) FROM upload GROUP BY destination, folder, state, mask
                        ORDER BY 1, 2, 3
                        """)
                )
            }
            #expect(tally == counted)
        }
    }
}
