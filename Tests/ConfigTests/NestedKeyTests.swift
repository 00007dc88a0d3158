import Core
import Testing

@testable import Config

/// Keys of a destination that are in sections of their own.
@Suite("Nested keys of a destination")
struct NestedKeyTests {
    private static let types = [
        DestinationSchema(
            name: "film", summary: "films",
            keys: [
                SettingKey("url", .url, required: true, "The address."),
                SettingKey(
                    "video",
                    .section([
                        SettingKey("name", .template, "Its title."),
                        SettingKey("users", .texts, "Who may see it."),
                        SettingKey(
                            "privacy", .section([SettingKey("view", .choice(["nobody", "anybody"]), "Who sees it.")]),
                            "Privacy."),
                    ]), "What is said of it."),
            ])
    ]

    private func read(_ film: String) throws(ConfigErrors) -> LoadedSettings {
        let text = """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [a]}]
            destinations:
              a: {type: film, url: "https://a.example/"\(film)}
            """
        return try Settings.read([("a.yaml", Array(text.utf8))], types: Self.types, disk: .unchecked) { _ in nil }
    }

    private func objection(_ film: String) -> String {
        do throws(ConfigErrors) {
            _ = try read(film)
            return ""
        } catch { return error.description }
    }

    @Test("nested keys are read by their full names, and printed in place")
    func reading() throws {
        let loaded = try read(", video: {name: \"{stem} of {folder}\", users: [a, b], privacy: {view: nobody}}")
        let film = try #require(loaded.settings.destinations.first)
        #expect(film.values["video.users"] == .texts(["a", "b"]))
        #expect(film.values["video.privacy.view"] == .text("nobody"))
        #expect(film.templates.mapValues(\.source) == ["video.name": "{stem} of {folder}"])
        #expect(film.values.count == 4)
        let yaml = EffectiveConfiguration(loaded).yaml
        #expect(yaml.contains("    video:\n"))
        #expect(yaml.contains("      name: \"{stem} of {folder}\""))
        #expect(yaml.contains("        view: nobody"))
        #expect(!yaml.contains("video.name"))
        let again = try Settings.read(
            [("a.yaml", Array(yaml.utf8))], types: Self.types, disk: .unchecked
        ) { _ in nil }
        #expect(again.settings.destinations.first?.values == film.values)
    }

    @Test("a mistake names the full key, with its place and the correct value")
    func mistakes() {
        let misspelt = objection(", video: {nmae: a}")
        #expect(misspelt.contains("a.yaml:4:54: destinations.a.video.nmae"), "\(misspelt)")
        #expect(misspelt.contains("did you mean `name`"))
        let deeper = objection(", video: {privacy: {view: some}}")
        #expect(deeper.contains("destinations.a.video.privacy.view"), "\(deeper)")
        #expect(objection(", video: clip").contains("takes a mapping"))
        #expect(objection(", video: {users: a}").contains("takes a list"))
        #expect(objection(", video: {name: \"{nobody}\"}").contains("no placeholder is called `{nobody}`"))
    }
}
