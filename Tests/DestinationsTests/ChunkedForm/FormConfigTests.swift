import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Destinations

@Suite("Configuration of a chunked form")
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

    @Test("a removed header or field of a preset does not conflict with another")
    func leftOut() throws {
        _ = try read("    preset: dropzone\n    headers: {accept: a/b}\n    send: {omit: [Accept]}")
        _ = try read("    preset: plupload\n    send: {file_part: {name: name}, omit: [name]}")
        #expect(throws: ConfigErrors.self) { try read("    preset: plupload\n    send: {file_part: {name: name}}") }
    }

    @Test("a mistake is reported once, with line, column and remedy", arguments: mistakes)
    func objections(_ lines: String, _ expected: String) throws {
        let error = try #require(throws: ConfigErrors.self) { try read(lines) }
        #expect(error.description.contains(expected), "\(error)")
        #expect(error.problems.count == 1, "\(error)")
    }

    @Test("`finish: none` is accepted with any preset, and printed")
    func noFinish() throws {
        for preset in FormPreset.names where preset != FormPreset.custom {
            let loaded = try read("    preset: \(preset)\n    finish: none")
            #expect(loaded.settings.destinations.first?.values["finish"] == .text("none"))
            let yaml = EffectiveConfiguration(loaded).yaml
            #expect(yaml.contains("    finish: none"), "\(yaml)")
        }
        _ = try read("    preset: webuploader\n    finish: {url: /merge, fields: {id: \"{id}\"}, when: multi}")
        _ = try read("    preset: fineuploader")
    }

    @Test("a secret in a section is never shown, whatever else is wrong with its line")
    func hidden() throws {
        for line in [
            "send: {fields: {a: hunter2}, x: 1}", "send: {headers: {X-Key: hunter2, a b: c}}",
            "open: {feilds: {a: hunter2}}",
            "secrets: {nas: hunter2}", "send: {fields: {a: {json: {b: hunter2, c d: e}}}}",
        ] {
            let error = try #require(throws: ConfigErrors.self) { try read("    preset: flow\n    \(line)") }
            #expect(!error.description.contains("hunter2"), "\(error)")
        }
    }

    @Test("settings are read, and printed in place")
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
                secrets: {nas: {file: /etc/sluice/nas}, key: {literal: no}}
                abort: {url: /gone, fields: {meta: {json: {id: "{id}", of: {json: {total: "{total}"}}, key: {env: KEY}}}}}
            """)
        let values = try #require(loaded.settings.destinations.first).values
        #expect(values["block.size"] == .bytes(4 << 20))
        #expect(values["send.omit"] == .texts(["suffix"]))
        let yaml = EffectiveConfiguration(loaded).yaml
        let again = try Settings.read(
            [("a.yaml", Array(yaml.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
        var shown = values
        #expect(
            values["abort.fields"]
                == .map([
                    "meta": .json([
                        "id": .literal("{id}"), "of": .json(["total": .literal("{total}")]), "key": .environment("KEY"),
                    ])
                ]))
        #expect(
            again.settings.destinations.first?.values["secrets"]
                == .secrets([
                    "nas": .file("/etc/sluice/nas"), "key": .literal("hidden"),
                ]))
        shown["secrets"] = again.settings.destinations.first?.values["secrets"]
        // Literals of a map are not shown, since a secret one cannot be recognised.
        shown["send.fields"] = again.settings.destinations.first?.values["send.fields"]
        #expect(again.settings.destinations.first?.values == shown, "\(yaml)")
        #expect(yaml.contains("      omit: [suffix]") || yaml.contains("omit:"), "\(yaml)")
    }

    @Test("another kind of query replaces the preset's, and the same kind extends it")
    func questions() throws {
        for line in [
            "{url: \"/have/{id}\", list: /l}", "{url: \"/have/{id}\", list: /l, query: {}}", "{header: Range}",
            "{list: /l, query: {id: \"{id}\"}}", "{query: {}, status: [200]}", "{query: {resumableType: \"\"}}",
        ] {
            _ = try read("    preset: resumable\n    probe: \(line)")
        }
        let preset = try #require(FormPreset.named("resumable")?.values)
        let mine: SettingValue = .map(["id": .literal("{id}")])
        #expect(["probe.list": .text("/l"), "probe.query": mine].mergedOver(preset)["probe.query"] == mine)
        #expect(["probe.list": .text("/l")].mergedOver(preset)["probe.query"] == nil)
        guard case .map(let both)? = ["probe.query": mine].mergedOver(preset)["probe.query"] else {
            Issue.record("the values contain no query")
            return
        }
        #expect(both["id"] == .literal("{id}") && both["resumableChunkNumber"] == .literal("{index1}"))
    }

    @Test("the manual has every key and every preset")
    func manual() throws {
        let page = Repository.root.appending("docs/destinations/chunked-form.md")
        let manual = String(decoding: try Files.read(page), as: UTF8.self)
        for key in ChunkedForm.kind.type.keys where key.name != "http" {
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
