import API
import Core
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Turns of folders in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct TurnTests {
    @Test("a file of one folder waits for running uploads, not for the whole queue of another folder")
    func burst() async throws {
        let scene = try await DaemonScene { settings in
            (settings.policy.total, settings.policy.perDestination) = (1, 1)
            settings.folders[1].policy.order = .largestFirst
        }
        scene.remote.standard = .waitUploading
        var ids: [String] = []
        for number in 0..<10 { ids.append(try await scene.add("burst \(number)")) }
        try await scene.isRunning(1)
        ids += [
            try await scene.add("small", in: "solo", size: 10), try await scene.add("large", in: "solo", size: 1000),
        ]
        for id in ids where await !scene.daemon.scheduler.isRunning(id) { try await scene.reach(.queued, [id]) }
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        let began = scene.remote.began
        #expect(began.count == 12)
        // The folder's own order counts within the folder.
        #expect(began[1] == "large")
        #expect(began[3] == "small")
        try await scene.stop()
    }

    @Test("a destination does not wait for the whole queue of another if both share one slot")
    func destinations() async throws {
        let scene = try await DaemonScene { settings in
            (settings.policy.total, settings.policy.perDestination) = (1, 1)
            var other = settings.destinations[0]
            other.name = "other"
            settings.destinations.append(other)
            settings.folders[1].uploadTo = ["other"]
        }
        scene.remote.standard = .waitUploading
        var ids = [try await scene.add("burst 0")]
        try await scene.isRunning(1)
        for number in 1..<5 { ids.append(try await scene.add("burst \(number)")) }
        ids.append(try await scene.add("only", in: "solo"))
        try await scene.reach(.queued, Array(ids.dropFirst()))
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        #expect(scene.remote.began[1] == "only")
        try await scene.stop()
    }

    @Test("an order set for a folder applies to waiting uploads from the reload on")
    func reload() async throws {
        let scene = try await DaemonScene { ($0.policy.total, $0.policy.perDestination) = (1, 1) }
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for size in [20, 10, 30] { ids.append(try await scene.add("of \(size)", size: size)) }
        try await scene.reach(.queued, ids)
        scene.written.edit { $0.folders[0].policy.order = .largestFirst }
        let reply = try await scene.daemon.reload()
        #expect(reply.changes.map(\.keys) == [["order"]])
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, ids)
        #expect(scene.remote.began == ["of 30", "of 20", "of 10"])
        try await scene.stop()
    }
}
