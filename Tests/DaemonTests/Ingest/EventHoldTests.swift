import API
import Core
import TestKit
import Testing

@testable import Daemon
@testable import Store

@Suite("Ended uploads and past events in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct EventHoldTests {
    @Test("an old event does not show the present hold of its upload, a recent one does")
    func events() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks)
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.queued, [id])
        func events() async throws -> [EventView] {
            var found: [EventView] = []
            for await event in try await scene.daemon.events(since: 0) where event.op?.id == id {
                found.append(event)
                if event.type == .state, event.detail["to"] == "queued" { break }
            }
            return found
        }
        clocks.advance(by: .seconds(3600))
        let old = try await events()
        #expect(!old.isEmpty)
        #expect(old.allSatisfy { $0.op?.holds.isEmpty == true && $0.op?.state == .queued })
        #expect(try await scene.daemon.show(id).upload.holds.map(\.text) == ["destination nas is paused"])
        let other = try await scene.add("b.mp4")
        try await scene.reach(.queued, [other])
        var new: EventView?
        for await event in try await scene.daemon.events(since: 0)
        where event.op?.id == other && event.detail["to"] == "queued" {
            new = event
            break
        }
        #expect(new?.op?.holds.map(\.text) == ["destination nas is paused"])
        try await scene.stop()
    }

    @Test("an exception of an upload ends with it, and those of other uploads and of its folder stay")
    func exceptions() async throws {
        let scene = try await DaemonScene()
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        var ids: [String] = []
        for name in ["a.mp4", "b.mp4"] { ids.append(try await scene.add(name)) }
        try await scene.reach(.queued, ids)
        _ = try await scene.daemon.allow(AllowRequest(ids: ids, kinds: ["quota", "window"], duration: 3600), by: "me")
        _ = try await scene.daemon.allow(AllowRequest(folder: "cam", kinds: ["quota"], duration: 3600), by: "me")
        _ = try await scene.daemon.pause(Selection(ids: [ids[1]]))
        #expect(try await scene.daemon.status().exceptions?.count == 5)
        _ = try await scene.daemon.resume(Selection(destination: "nas"))
        try await scene.reach(.completed, [ids[0]])
        try await eventually("exceptions of the completed upload are no longer shown") {
            try await scene.daemon.status().exceptions?.map { $0.name ?? "" }.sorted()
                == [ids[1], ids[1], "cam"].sorted()
        }
        #expect(try await scene.daemon.why(ids[0]).answers.first?.exceptions?.map(\.scope) == ["folder"])
        _ = try await scene.daemon.cancel(Selection(ids: [ids[1]]))
        try await eventually("exceptions of the cancelled upload are no longer shown") {
            try await scene.daemon.status().exceptions?.map(\.scope) == ["folder"]
        }
        try await eventually("the source is shown as kept") {
            try await scene.daemon.show(ids[1]).upload.sourceState == "kept"
        }
        try await scene.stop()
    }
}
