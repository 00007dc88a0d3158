import API
import Core
import Credentials
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Commands, without a daemon")
struct CommandTests {
    private static func pauses(_ scene: ComponentScene) -> PauseCommands {
        PauseCommands(
            context: scene.context, lifecycle: scene.lifecycle, finder: scene.finder, views: scene.views,
            scheduler: scene.scheduler)
    }

    private static func overrides(_ scene: ComponentScene) -> OverrideCommands {
        OverrideCommands(
            context: scene.context, lifecycle: scene.lifecycle, finder: scene.finder, scheduler: scene.scheduler)
    }

    @Test("no command is accepted during start-up")
    func starting() async throws {
        let scene = try await ComponentScene(isReady: false)
        await #expect { _ = try await Self.pauses(scene).pause(Selection(all: true)) } throws: {
            ($0 as? Refusal)?.code == .unavailable
        }
        await #expect {
            _ = try await Self.overrides(scene).limit(LimitRequest(rate: nil, duration: nil), by: "test")
        } throws: { ($0 as? Refusal)?.code == .unavailable }
    }

    @Test("a pause of a folder is stored with its end, and resume removes it")
    func folder() async throws {
        let scene = try await ComponentScene()
        let pauses = Self.pauses(scene)
        _ = try await pauses.pause(Selection(folder: "cam", duration: 60))
        let stored = try #require(try await scene.store.read { try $0.pauses.all() }.first)
        #expect(stored.scope == .folder && stored.name == "cam")
        #expect(stored.until == scene.clocks.wall().advanced(by: .seconds(60)))
        _ = try await pauses.resume(Selection(folder: "cam"))
        #expect(try await scene.store.read { try $0.pauses.all() }.isEmpty)
    }

    @Test("a paused upload is shown as paused until it is resumed")
    func upload() async throws {
        let scene = try await ComponentScene()
        let id = try await scene.record("a.mp4")
        #expect(try await Self.pauses(scene).pause(Selection(ids: [id])).uploads.first?.isPaused == true)
        #expect(try await Self.pauses(scene).resume(Selection(ids: [id])).uploads.first?.isPaused == false)
    }

    @Test(
        "a selection of two kinds is refused",
        arguments: [
            Selection(folder: "cam", destination: "nas"), Selection(ids: ["a"], all: true),
            Selection(all: true, folder: "cam"), Selection(folder: "cam", duration: 0),
        ])
    func contradictions(_ selection: Selection) async throws {
        let scene = try await ComponentScene()
        await #expect { _ = try await Self.pauses(scene).pause(selection) } throws: {
            ($0 as? Refusal)?.code == .badRequest
        }
    }

    @Test("an exception for a folder lasts until its end and can be withdrawn")
    func allow() async throws {
        let scene = try await ComponentScene()
        let overrides = Self.overrides(scene)
        let request = AllowRequest(folder: "cam", kinds: ["quota"], duration: 60)
        let made = try await overrides.allow(request, by: "anna").exceptions
        #expect(made.map(\.kind) == ["quota"])
        #expect(made.map(\.by) == ["anna"])
        let reply = try await overrides.allow(AllowRequest(folder: "cam", kinds: ["quota"], duration: 0), by: "anna")
        #expect(reply.exceptions.isEmpty)
        #expect(reply.ended?.map(\.kind) == ["quota"])
    }

    @Test(
        "requests for exceptions are refused if they say too little or too much",
        arguments: [
            AllowRequest(folder: "cam", kinds: [], duration: 60),
            AllowRequest(folder: "cam", kinds: ["weather"], duration: 60),
            AllowRequest(kinds: ["quota"], duration: 60),
            AllowRequest(ids: ["a"], folder: "cam", kinds: ["quota"], duration: 60),
            AllowRequest(folder: "cam", kinds: ["quota"], duration: 367 * 86_400),
        ])
    func refusedExceptions(_ request: AllowRequest) async throws {
        let scene = try await ComponentScene()
        await #expect { _ = try await Self.overrides(scene).allow(request, by: "test") } throws: {
            ($0 as? Refusal)?.code == .badRequest
        }
    }

    @Test("a rate limit needs a rate and a duration")
    func limit() async throws {
        let scene = try await ComponentScene()
        let overrides = Self.overrides(scene)
        for request in [LimitRequest(rate: 1, duration: nil), LimitRequest(rate: nil, duration: 1)] {
            await #expect { _ = try await overrides.limit(request, by: "test") } throws: {
                ($0 as? Refusal)?.code == .badRequest
            }
        }
        #expect(try await overrides.limit(LimitRequest(rate: 9, duration: 60), by: "x").exceptions.first?.rate == 9)
    }
}
