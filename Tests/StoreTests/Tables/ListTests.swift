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
            if try one([true, false]) { filter.text = FilePath(try one(["x", "y1", "7"])) }
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
                    && (filter.text.map { row.asset.identity.relative.display.contains($0.display) } ?? true)
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
}
