import API
import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Reload in process", .timeLimit(.minutes(Patience.minutes(2))))
struct ReloadTests {
    @Test("a transfer continues unchanged while settings other than its destination's change")
    func untouched() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        scene.written.edit { settings in
            settings.folders[0].priority = 7
            settings.folders.remove(at: 1)
            settings.policy.order = .smallestFirst
            settings.policy.total = 3
            settings.staging.keepFree = 1
            settings.destinations[0].policy.concurrency = 4
            settings.destinations[0].place = "elsewhere:1:1"
        }
        let view = try await scene.daemon.reload()
        #expect(view.applied)
        #expect(
            view.changes.map(\.words) == [
                "folder solo removed", "folder cam changed (priority)", "destination nas changed (concurrency)",
                "staging changed (keep_free)", "policy changed (concurrency, order)",
            ])
        #expect(scene.remote.running.count == 1)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        #expect(scene.remote.began == ["a"])
        #expect(try await scene.daemon.reload().changes.isEmpty)
        try await scene.stop()
    }

    @Test("a transfer to a changed destination stops and resumes from its checkpoint")
    func changed() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        scene.written.edit { $0.destinations[0].values["token"] = .text("another") }
        #expect(try await scene.daemon.reload().changes.map(\.words) == ["destination nas changed (token)"])
        try await eventually("the upload has started again") { scene.remote.began.count == 2 }
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        // The object that the first attempt made, and no second one.
        #expect(scene.remote.objects == ["a"])
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.attempt == 0)
        try await scene.stop()
    }

    @Test("uploads to a removed destination wait with the reason and continue when it is back")
    func removed() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        let before = scene.written.settings
        scene.written.edit { settings in
            settings.destinations[0].name = "other"
            for number in settings.folders.indices { settings.folders[number].uploadTo = ["other"] }
        }
        _ = try await scene.daemon.reload()
        try await scene.reach(.queued, [id])
        let hold = try #require(try await scene.daemon.show(id).upload.holds.first)
        #expect(hold.kind.known == .destination)
        #expect(hold.text.contains("destination nas is not in the configuration"))
        #expect(try await scene.daemon.status().warnings.contains { $0.contains("destination nas") })
        scene.written.edit { $0 = before }
        _ = try await scene.daemon.reload()
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        #expect(scene.remote.objects == ["a"])
        try await scene.stop()
    }

    @Test("a setting that needs a restart is refused by its key, and nothing else of that reload is applied")
    func fixed() async throws {
        let scene = try await DaemonScene()
        let before = scene.daemon.context.settings
        scene.written.edit { settings in
            settings.state = "/elsewhere"
            settings.staging.path = "/elsewhere/staging"
            settings.control.socket = "/elsewhere/socket"
            settings.folders.removeAll()
            settings.policy.order = .largestFirst
        }
        let view = try await scene.daemon.reload()
        #expect(!view.applied)
        #expect(view.errors.map(\.key) == ["state", "staging.path", "control.socket"])
        #expect(view.errors.allSatisfy { $0.place == "/s.yaml" && $0.text.contains("restart to apply it") })
        #expect(view.changes.isEmpty)
        #expect(scene.daemon.context.settings == before)
        try await scene.stop()
    }

    @Test("a configuration error or an unusable destination keeps the old settings and the running transfers")
    func refused() async throws {
        let scene = try await DaemonScene()
        let before = scene.daemon.context.settings
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        let problem = ConfigProblem(
            severity: .error, file: "/s.yaml", line: 2, column: 3, key: "folders", text: "is wrong", excerpt: "  ^")
        scene.written.spoil(ConfigErrors(problems: [problem]))
        let view = try await scene.daemon.reload()
        #expect(
            view
                == ReloadView(
                    applied: false,
                    errors: [ProblemView(place: "/s.yaml:2:3", key: "folders", text: "is wrong", excerpt: "  ^")]))
        scene.written.spoil(nil)
        scene.written.edit { settings in
            settings.folders.removeAll()
            settings.destinations[0].values["token"] = .text("x")
            settings.destinations.append(
                DestinationSettings(
                    name: "new", type: "scripted", values: ["bad": .flag(true)], policy: PolicyOverrides(),
                    place: "/s.yaml:9:1"))
        }
        let unusable = try await scene.daemon.reload()
        #expect(!unusable.applied)
        #expect(unusable.errors.map(\.place) == ["/s.yaml:9:1"])
        #expect(unusable.errors.map(\.key) == ["destinations.new.bad"])
        #expect(scene.daemon.context.settings == before)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        #expect(scene.remote.began == ["a"])
        try await scene.stop()
    }

    @Test("a stopping daemon refuses a reload and keeps the old settings")
    func leaving() async throws {
        let scene = try await DaemonScene()
        let before = scene.daemon.context.settings
        scene.written.edit { settings in
            settings.folders.removeAll()
            settings.destinations[0].values["token"] = .text("x")
        }
        scene.daemon.lifecycle.beginStop()
        await #expect(throws: Refusal.self) { try await scene.daemon.reload() }
        #expect(scene.daemon.context.settings == before)
        try await scene.stop()
    }

    @Test("simultaneous reloads run one after another, the last file is in force, and transfers are not affected")
    func many() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 1...200 {
                group.addTask {
                    scene.written.edit { $0.policy.perDestination = number % 64 + 1 }
                    return try await scene.daemon.reload().applied
                }
            }
            for try await applied in group { #expect(applied) }
        }
        #expect(scene.daemon.context.settings == scene.written.settings)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        #expect(scene.remote.began == ["a"])
        try await scene.stop()
    }

    @Test("additional slots are used at once; fewer slots let running transfers finish")
    func slots() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        scene.written.edit { $0.policy.total = 1 }
        _ = try await scene.daemon.reload()
        // In parallel, either of the first two could be copied first and take the slot.
        var ids = try await [scene.add("0")]
        try await scene.isRunning(1)
        for number in 1..<4 { ids.append(try await scene.add("\(number)")) }
        try await scene.reach(.queued, Array(ids[1...]))
        #expect(scene.remote.running.count == 1)
        scene.written.edit { $0.policy.total = 3 }
        _ = try await scene.daemon.reload()
        try await scene.isRunning(3)
        scene.written.edit { $0.policy.total = 1 }
        _ = try await scene.daemon.reload()
        #expect(scene.remote.running.count == 3)
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        #expect(scene.remote.began.count == 4)
        try await scene.stop()
    }

    @Test("a changed order sorts uploads that already wait")
    func order() async throws {
        let scene = try await DaemonScene()
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for size in [300, 100, 200] { ids.append(try await scene.add("\(size)", size: size)) }
        try await scene.reach(.queued, ids)
        scene.written.edit { settings in
            settings.policy.order = .smallestFirst
            settings.policy.total = 1
        }
        _ = try await scene.daemon.reload()
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, ids)
        #expect(scene.remote.began == ["100", "200", "300"])
        try await scene.stop()
    }

    @Test("pauses and the hold of an unchanged destination are kept; a change to the destination tries it at once")
    func holds() async throws {
        let scene = try await DaemonScene(retry: .seconds(3600))
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let id = try await scene.add("a")
        try await eventually("the destination is held") { await scene.daemon.scheduler.shown().hold(of: "nas") != nil }
        _ = try await scene.daemon.pause(Selection(folder: "solo"))
        scene.written.edit { $0.folders[0].priority = 3 }
        _ = try await scene.daemon.reload()
        #expect(await scene.daemon.scheduler.shown().hold(of: "nas") != nil)
        #expect(try await scene.daemon.status().paused.map(\.name) == ["solo"])
        #expect(scene.remote.began.count == 1)
        scene.remote.standard = .take
        scene.written.edit { $0.destinations[0].values["url"] = .text("http://right/") }
        _ = try await scene.daemon.reload()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a refused credential is read and tried again even if no other setting changed")
    func credential() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .fail(.authenticate)
        let id = try await scene.add("a")
        try await eventually("the destination is held") {
            await scene.daemon.scheduler.shown().hold(of: "nas")?.kind == .auth
        }
        scene.remote.standard = .take
        _ = try await scene.daemon.reload()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }
}
