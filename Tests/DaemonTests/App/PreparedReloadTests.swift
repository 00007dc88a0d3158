import API
import Core
import Destinations
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Comparing new settings with those in force")
struct PreparedReloadTests {
    private static func prepare(
        _ scene: ComponentScene, makes: @escaping (DestinationSettings) throws -> any Destination,
        _ change: (inout Settings) -> Void
    ) -> PreparedReload {
        var settings = scene.parts.settings
        change(&settings)
        return PreparedReload(
            LoadedSettings(settings: settings, warnings: [], files: ["/s.yaml"]), replacing: scene.parts.runtime,
            at: scene.clocks.wall(), make: makes)
    }

    @Test("a destination with the same remote keeps its object")
    func unchanged() async throws {
        let scene = try await ComponentScene()
        let prepared = Self.prepare(scene, makes: { _ in throw Unexpected() }) {
            $0.destinations[0].policy.concurrency = 3
        }
        #expect(prepared.view.applied)
        #expect(prepared.configuration?.destinations["nas"] as? ScriptedRemote === scene.remote)
        #expect(!prepared.view.changes.isEmpty)
    }

    @Test("a destination with a changed value gets a new object and counts as changed")
    func changed() async throws {
        let scene = try await ComponentScene()
        let other = ScriptedRemote()
        let prepared = Self.prepare(scene, makes: { _ in other }) { $0.destinations[0].values["token"] = .text("x") }
        let new = try #require(prepared.configuration)
        #expect(new.destinations["nas"] as? ScriptedRemote === other)
        #expect(PreparedReload.changedDestinations(from: scene.parts.runtime, to: new) == ["nas"])
    }

    @Test("added and removed destinations count as changed")
    func replaced() async throws {
        let scene = try await ComponentScene()
        let prepared = Self.prepare(scene, makes: { _ in ScriptedRemote() }) { $0.destinations[0].name = "attic" }
        let new = try #require(prepared.configuration)
        #expect(PreparedReload.changedDestinations(from: scene.parts.runtime, to: new) == ["nas", "attic"])
    }

    @Test("a changed setting that needs a restart is an error, and no object is created")
    func fixed() async throws {
        let scene = try await ComponentScene()
        let prepared = Self.prepare(scene, makes: { _ in throw Unexpected() }) {
            $0.state = "/elsewhere"
            $0.destinations[0].values["token"] = .text("x")
        }
        #expect(prepared.configuration == nil)
        #expect(!prepared.view.applied)
        #expect(prepared.view.errors.map(\.key) == ["state"])
        #expect(prepared.view.errors.map(\.place) == ["/s.yaml"])
    }

    @Test("the error of a destination names its key")
    func unusable() async throws {
        let scene = try await ComponentScene()
        let prepared = Self.prepare(scene, makes: { _ in throw UnusableSettingError(key: "url", problem: "is bad") }) {
            $0.destinations[0].values["url"] = .text("x")
        }
        #expect(prepared.configuration == nil)
        #expect(prepared.view.errors.map(\.key) == ["destinations.nas.url"])
        #expect(prepared.view.errors.map(\.place) == ["s:1"])
    }

    @Test("the changed folders are those whose release_unsure changed or that were removed")
    func releaseUnsure() async throws {
        let old = try await ComponentScene().parts.settings
        var new = old
        new.folders[0].releaseUnsure = .keep
        #expect(PreparedReload.foldersWithOtherReleaseUnsure(from: old, to: new) == ["cam"])
        new.folders.remove(at: 1)
        #expect(PreparedReload.foldersWithOtherReleaseUnsure(from: old, to: new) == ["cam", "door"])
    }

    private struct Unexpected: Error {}
}
