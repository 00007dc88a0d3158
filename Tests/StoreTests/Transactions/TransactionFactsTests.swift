import Core
import TestKit
import Testing

@testable import Store

@Suite("Facts in memory that transactions change")
struct TransactionFactsTests {
    enum Undoing: CaseIterable, Sendable { case piece, transaction }

    struct Undone: Error {}

    /// The fields of the facts, as text.
    private static func fields(_ facts: TransactionFacts) -> [String: String] {
        Dictionary(Mirror(reflecting: facts).children.map { ($0.label ?? "", "\($0.value)") }) { $1 }
    }

    @Test("a piece or a transaction that is undone leaves each of them as it was", arguments: Undoing.allCases)
    func undone(_ undoing: Undoing) async throws {
        let scene = try await Scene()
        let id = try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
        let before = try await scene.store.read { Self.fields($0.session.facts) }
        await #expect(throws: Undone.self) {
            try await scene.store.write { tx in
                let upload = try #require(try tx.uploads.find(id))
                tx.session.facts.storedEvent += 1
                tx.session.facts.changes.insert(.leftovers)
                tx.session.facts.outcomes.note(upload, .completed, at: tx.clocks.wall())
                tx.session.facts.uploadsWithNotedProgress.insert(id)
                tx.session.facts.waitedBefore.append(id)
                tx.session.facts.failingTimes.beginAttempt(id, at: 1)
                let during = Self.fields(tx.session.facts)
                for (field, text) in before { #expect(during[field] != text, "the test changes \(field)") }
                if undoing == .transaction { try tx.connection.execute("ROLLBACK") }
                throw Undone()
            }
        }
        #expect(try await scene.store.read { Self.fields($0.session.facts) } == before)
        #expect(await scene.store.endingCounts().isEmpty)
        let seq = await scene.store.seq
        try await scene.store.write { try $0.settings.set("written", "again") }
        #expect(await scene.store.seq == seq)
    }
}
