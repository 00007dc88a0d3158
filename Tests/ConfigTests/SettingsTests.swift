import Core
import Testing

@testable import Config

@Suite("Settings")
struct SettingsTests {
    @Test("fills in the defaults")
    func defaults() throws {
        let loaded = try read(minimal)
        let settings = loaded.settings
        #expect(loaded.warnings.isEmpty)
        #expect(settings.state == "/var/lib/sluice")
        #expect(
            settings.staging
                == StagingSettings(path: "/var/lib/sluice/staging", copy: .auto, maxSize: nil, keepFree: 1_000_000_000))
        #expect(settings.control.socket == "/run/sluice/control.sock")
        #expect(
            settings.policy == PolicySettings(total: 3, perDestination: 2, order: .newestFirst, retry: Backoff()))
        let folder = try #require(settings.folders.first)
        #expect(folder.watch == WatchRule(name: "door", path: "/srv/camera"))
        #expect(folder.uploadTo == ["nas"])
        #expect(folder.afterUpload == .keep)
        #expect(folder.name.source == "{folder}/{relative}")
        #expect(folder.empty == .skip)
        #expect(folder.duplicates == .upload)
        #expect(
            settings.destinations == [
                DestinationSettings(
                    name: "nas", type: "tus", values: ["url": .text("https://nas.example/files")],
                    policy: PolicyOverrides(), place: "a.yaml:7:3")
            ])
    }
}
