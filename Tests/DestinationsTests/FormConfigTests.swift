import Core
import Linux
import Testing

@testable import Config
@testable import Destinations

@Suite("the configuration of a chunked form")
struct FormConfigTests {
    private func read(_ lines: String) throws(ConfigErrors) -> LoadedSettings {
        let text = """
            version: 1
            folders: [{name: door, path: /srv/camera, upload_to: [a]}]
            destinations:
              a:
                type: chunked-form
                url: https://a.example/upload
            \(lines)
            """
        return try Settings.read(
            [("a.yaml", Array(text.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
    }

    static let mistakes: [(lines: String, expected: String)] = [
        (
            "    preset: breakpoint\n    send: {fields: {crc: \"{crc23}\"}}",
            "a.yaml:8:26: destinations.a.send.fields.crc: names `{crc23}`, which does not exist; did you mean `{crc32}`?"
        ),
        (
            "    preset: breakpoint\n    success: {json: [\"/a is b\"]}",
            "a.yaml:8:21: destinations.a.success.json: takes conditions like"
        ),
        ("    preset: breakpint", "a.yaml:7:13: destinations.a.preset: takes one of"),
        (
            "    preset: plupload\n    parallel_blocks: 2",
            "a.yaml:8:22: destinations.a.parallel_blocks: must be 1: this server puts blocks together as they come"
        ),
        (
            "    preset: custom\n    open:\n      fields: {a: b}",
            "a.yaml:8:5: destinations.a.open.token: is missing: where the answer names the upload"
        ),
        (
            "    preset: flow\n    headers: {Content-Length: \"1\"}",
            "a.yaml:8:31: destinations.a.headers.Content-Length: cannot be set: it belongs to the protocol"
        ),
        (
            "    preset: custom\n    send: {fields: {x: y}}",
            "destinations.a.send: does not say which block it carries"
        ),
        (
            "    preset: resumable\n    send: {omit: [resumableChunkNumber], query: {resumableChunkNumber: \"\"}}",
            "destinations.a.send: does not say which block it carries"
        ),
    ]

    @Test("a mistake is told with its line, its column, and what to do")
    func objections() {
        for (lines, expected) in Self.mistakes {
            do throws(ConfigErrors) {
                _ = try read(lines)
                Issue.record("no objection to \(lines)")
            } catch { #expect(error.description.contains(expected), "\(error)") }
        }
    }

    @Test("what is written is read, and printed where it stood")
    func roundTrip() throws {
        let loaded = try read(
            """
                preset: breakpoint
                credential: {file: /etc/sluice/a}
                block: {size: 4 MiB, rule: merge}
                send: {fields: {crc: ""}, omit: [suffix]}
                restart: {status: ["404"]}
                finish: {url: "/done/{id}", when: multi, take: /data/url}
                parallel_blocks: 3
            """)
        let values = try #require(loaded.settings.destinations.first).values
        #expect(values["block.size"] == .bytes(4 << 20))
        #expect(values["send.omit"] == .texts(["suffix"]))
        let yaml = EffectiveConfiguration(loaded).yaml
        let again = try Settings.read(
            [("a.yaml", Array(yaml.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
        var shown = values
        // Literals of a map are not shown: nobody can tell which is a secret.
        shown["send.fields"] = again.settings.destinations.first?.values["send.fields"]
        #expect(again.settings.destinations.first?.values == shown, "\(yaml)")
        #expect(yaml.contains("      omit: [suffix]") || yaml.contains("omit:"), "\(yaml)")
    }

    @Test("the manual has every key and every preset")
    func manual() throws {
        let page = FilePath(#filePath).parent.parent.parent.appending("docs/destinations/chunked-form.md")
        let manual = String(decoding: try Files.read(page), as: UTF8.self)
        for key in ChunkedForm.kind.type.keys {
            // Those of its sections too.
            for one in key.flat {
                let last = one.name.split(separator: ".").last ?? ""
                #expect(manual.contains("`\(last)`") || manual.contains("`\(last):"), "\(one.name)")
            }
        }
        for preset in FormPreset.names { #expect(manual.contains("`\(preset)`"), "\(preset)") }
        for name in FormName.allCases { #expect(manual.contains("{\(name.rawValue)}"), "\(name)") }
    }
}
