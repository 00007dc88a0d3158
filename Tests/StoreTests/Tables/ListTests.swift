import Core
import Store
import TestKit
import Testing

@Suite("Lists")
struct ListTests {
    @Test(
        "each list filter returns what a scan of every row finds, in any combination",
        arguments: Tier.sample(1...40, 8, inFull: 16))
    func filters(_ seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        func one<T>(_ values: [T]) throws -> T { try #require(values.randomElement(using: &dice)) }
        let scene = try await Scene()
        let start = scene.clocks.wall()
        let cameras = ["door", "yard", "a=b&c"]
        for number in 0..<30 {
            let file = Scene.file("\(try one(["x", "y"]))\(number)", folder: try one(["cam", "bee"]))
            var arrival = Scene.arrival(file, to: try one([["nas"], ["nas", "cloud"]]))
            let camera = try one(cameras)
            for index in arrival.orders.indices {
                arrival.orders[index].context = ["camera": camera, "n": "\(number % 3)"]
            }
            if try one([true, false]) {
                try await scene.stage(arrival, sha256: noise(32, seed: UInt64(number)))
            } else {
                _ = try await scene.store.write { [arrival] tx in try tx.arrivals.record([arrival]) }
            }
            scene.clocks.advance(by: .seconds(try one([0, 1, 60])))
        }
        let all = try await scene.store.rows(.all)
        let length = scene.clocks.wall().milliseconds - start.milliseconds
        for _ in 0..<30 {
            var filter = UploadFilter.all
            if try one([true, false]) { filter.context["camera"] = try one(cameras + ["none"]) }
            if try one([true, false]) { filter.context["n"] = "1" }
            let text = try one(["x", "X", "Y1", "7"])
            if try one([true, false]) { filter.text = NameSearch(text) }
            if try one([true, false]) { filter.folder = try one(["cam", "bee"]) }
            if try one([true, false]) { filter.destination = try one(["nas", "cloud"]) }
            if try one([true, false]) { filter.states = [try one([.staging, .queued])] }
            if try one([true, false]) { filter.after = try one(all).upload.id }
            if try one([true, false]) {
                filter.since = start.advanced(by: .milliseconds(Int64.random(in: -1...length + 1, using: &dice)))
            }
            if try one([true, false]) {
                filter.until = start.advanced(by: .milliseconds(Int64.random(in: -1...length + 1, using: &dice)))
            }
            filter.limit = try one([1, 3, 100])
            let expected = all.filter { row in
                let upload = row.upload
                let added = (UploadID(upload.id)?.milliseconds ?? 0)
                return filter.context.allSatisfy { upload.context[$0.key] == $0.value }
                    && (filter.text == nil || row.asset.identity.relative.display.contains(text.lowercased()))
                    && (filter.folder.map { $0 == upload.folder } ?? true)
                    && (filter.destination.map { $0 == upload.destination } ?? true)
                    && (filter.states.isEmpty || filter.states.contains(upload.state))
                    && (filter.after.map { upload.id < $0 } ?? true)
                    && (filter.since.map { added >= $0.milliseconds } ?? true)
                    && (filter.until.map { added < $0.milliseconds } ?? true)
            }
            let found = try await scene.store.rows(filter).map(\.upload.id)
            #expect(found == expected.prefix(filter.limit).map(\.upload.id), "seed \(seed), \(filter)")
        }
    }

    @Test("a text finds a path in any case, and a name that is no Unicode by what is displayed of it")
    func texts() async throws {
        let scene = try await Scene()
        let names = [
            FilePath("Front/DOOR 1.MP4"), FilePath(bytes: Array("caf".utf8) + [0xE9, 0x2E]), FilePath("a\\b"),
        ]
        for name in names {
            let arrival = Scene.arrival(Scene.file(name))
            _ = try await scene.store.write { tx in try tx.arrivals.record([arrival]) }
        }
        func found(_ text: String) async throws -> [FilePath] {
            var filter = UploadFilter.all
            filter.text = NameSearch(text)
            return try await scene.store.rows(filter).map(\.asset.identity.relative)
        }
        for name in names {
            #expect(try await found(name.display) == [name])
            #expect(try await found(name.name.display) == [name])
        }
        #expect(try await found("t/door") == [names[0]])
        #expect(try await found("CAF\\xE9") == [names[1]])
        #expect(try await found("a\\") == [names[2]])
        #expect(try await found("nothing").isEmpty)
    }
}
