import Core
import TestKit
import Testing

@testable import Store

@Suite("The backlog")
struct BacklogTests {
    @Test("the first uploads of each class are read in claim order, and the others are counted, whatever their number")
    func reads() async throws {
        let scene = try await Scene(sorting: .smallestFirst)
        let files = (0..<250).map { Scene.file("f\($0)", size: 1000 - Int64($0), modified: Int64($0)) }
        for file in files { try await scene.stage(Scene.arrival(file)) }
        let first = try #require(try await scene.store.claim("nas", passingOver: []))
        _ = await scene.store.statementCosts(.runs)
        let backlog = try await scene.store.read { try $0.backlog.classes(reading: 100) }
        let nas = try #require(backlog.first { $0.destination == "nas" })
        #expect(backlog.count == 1)
        #expect(nas.first.count == 101)
        #expect(nas.first.first?.id == first.upload.id)
        #expect(nas.first.map(\.isRunning) == [true] + [Bool](repeating: false, count: 100))
        #expect(nas.first.map(\.size) == (751...851).map { Int64($0) })
        #expect(nas.rest == Spending(bytes: (852...1000).reduce(0, +), files: 149))
        #expect(nas.unstaged == .none && nas.paused == .none)
    }

    @Test("uploads without a copy and paused uploads are counted separately")
    func apart() async throws {
        let scene = try await Scene(sorting: .smallestFirst)
        _ = try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("new", size: 5))]) }
        for name in ["a", "b"] { try await scene.stage(Scene.arrival(Scene.file(name, size: 70))) }
        let id = try #require(try await scene.store.read { try $0.backlog.classes() }.first?.first.first?.id)
        try await scene.store.write { try $0.transitions.pause([id], true) }
        let nas = try #require(try await scene.store.read { try $0.backlog.classes() }.first)
        #expect(nas.unstaged == Spending(bytes: 5, files: 1))
        #expect(nas.paused == Spending(bytes: 70, files: 1))
        #expect(nas.first.count == 1 && nas.rest == .none)
    }
}
