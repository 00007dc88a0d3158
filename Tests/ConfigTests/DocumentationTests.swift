import Core
import Linux
import TestKit
import TestTraits
import Testing

@testable import Config

/// The root of the repository in which this file was compiled.
private let top = Repository.root

@Suite("Documentation of the configuration", .ownThreads)
struct DocumentationTests {
    @Test("the manual lists exactly the known keys")
    func manual() throws {
        let bytes = try Files.read(top.appending("docs/configuration.md"))
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let tables = lines.drop { $0 != "## The top of the file" }
        let listed = tables.filter { $0.hasPrefix("| `") }.map { String($0.dropFirst(3).prefix { $0 != "`" }) }
        let known = Section.all.flatMap { section in
            section.keys.map { section.path.isEmpty ? $0 : "\(section.path).\($0)" }
        }
        #expect(Set(listed).subtracting(known).sorted() == [])
        #expect(Set(known).subtracting(listed).sorted() == [])
        #expect(listed.count == Set(listed).count)
    }

    @Test("the manual's defaults are those of the program")
    func defaults() throws {
        let bytes = try Files.read(top.appending("docs/configuration.md"))
        // `| key | takes | default | means |`
        let rows = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("| `") }
            .map { $0.split(separator: "|").map { $0.split(separator: " ").joined(separator: " ")[...] } }
        let documented = Dictionary(
            rows.filter {
                $0.count == 4 && $0[2].hasPrefix("`") && $0[2].dropFirst().firstIndex(of: "`") == $0[2].indices.last
            }.map { ($0[0].dropFirst().dropLast(), $0[2].dropFirst().dropLast()) },
            uniquingKeysWith: { first, _ in first })
        let loaded = try read(
            minimal.replacing("upload_to: [nas]", with: "upload_to: [nas]\n    group: {by: stem}") + """

                hooks: [{name: h, url: "https://h/"}]
                metrics: {textfile: /m.prom}
                policy: {before_upload: {command: [/bin/true]}}
                """)
        var compared = 0
        for row in EffectiveConfiguration(loaded).rows where row.from == "default" {
            let path = row.path.replacing("folders.door.", with: "folders[].").replacing("hooks.h.", with: "hooks[].")
            guard let value = row.value?.yaml, let text = documented[path[...]] else { continue }
            #expect(value.filter { $0 != "\"" } == text, "\(path)")
            compared += 1
        }
        #expect(compared > 25)
    }

    @Test("the manual names the keys that need a restart")
    func fixedKeys() throws {
        let bytes = try Files.read(top.appending("docs/configuration.md"))
        let names = SettingsChanges.namesOfFixedKeys.map { "`\($0)`" }
        let sentence = "Only a restart changes \(names.dropLast().joined(separator: ", ")) and \(names.last ?? "")"
        #expect(String(decoding: bytes, as: UTF8.self).contains(sentence))
    }

    @Test("each test that the threat model names exists")
    func threatModel() throws {
        let text = String(decoding: try Files.read(top.appending("docs/security.md")), as: UTF8.self)
            .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let tests = try Repository.swiftFiles(below: "Tests").map {
            String(decoding: try Files.read($0), as: UTF8.self)
        }
        .joined()
        // Every second piece is between two of these marks.
        func marked(_ mark: Character) -> [Substring] {
            text.split(separator: mark, omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
                .map(\.element)
        }
        let suites = marked("`").filter { $0.hasSuffix("Tests") }
        let names = marked("\"").map { $0.hasSuffix(" …") ? $0.dropLast(2) : $0 }
        #expect(suites.count > 20 && names.count > 20)
        #expect(suites.filter { !tests.contains(" \($0) {") && !tests.contains(" \($0): ") } == [])
        #expect(names.filter { !tests.contains("\"\($0)") } == [])
    }

    @Test("differences are reported in the words of the file, key by key")
    func changes() throws {
        func settings(_ folder: String, _ more: String = "") throws -> Settings {
            let text = """
                version: 1
                state: /s
                folders: [{name: cam, path: /cam, upload_to: [nas]\(folder)}]
                destinations: {nas: {type: tus, url: "http://nas/"}}
                \(more)
                """
            return try Settings.read(
                [("/s.yaml", Array(text.utf8))], types: types, disk: .unchecked, environment: { _ in nil }
            ).settings
        }
        let plain = try settings("")
        // The text shows each key of a folder that a person can set, by its own name.
        let values = [
            "recursive": "false", "include": "[\"*.mp4\"]", "exclude": "[\"*.tmp\"]", "settle": "{quiet_for: 3s}",
            "existing": "skip", "empty": "upload", "duplicates": "skip", "after_upload": "{source: delete}",
            "priority": "3", "remote_name": "\"{name}\"", "metadata": "{a: b}", "key": "\"{name}\"",
            "group": "{by: stem}", "staging": "{copy: in-place}",
            "export": "{command: [/bin/cp, \"{input}\", \"{output}\"], output: \"{stem}.mp4\"}",
            "context": "{a: b}", "concurrency": "1", "retry": "{first: 2s}", "order": "largest-first",
            "require": "{file: .here}",
            "watch": "poll", "min_size": "1 kB", "max_size": "1 GB", "min_age": "1h", "max_age": "2d",
            "removable": "always", "windows": "[\"22:00-06:00\"]", "bandwidth": "2 MB/s",
            "metered": "pause", "metered_unknown": "allow", "networks": "[{interface: eth0, metered: true}]",
            "pause": "[{name: abroad, when: {roaming: true}}]", "quotas": "[{per: day, bytes: 20 GB}]",
            "expires_after": "7d",
            "busy": "{file: /run/busy}",
            "before_upload": "{command: [/bin/true]}", "release_unsure": "after 10m",
        ]
        for (key, value) in values {
            let changes = SettingsChanges(from: plain, to: try settings(", \(key): \(value)")).changes
            #expect(changes == [.init(what: "folder", name: "cam", kind: .changed, keys: [key])])
        }
        // The text itself contains `name`, `path` and `upload_to`.
        #expect(Set(values.keys).union(["name", "path", "upload_to"]) == Set(Section.folder.keys))
        let moved = SettingsChanges(from: plain, to: try settings("", "control: {socket: /c}\nstaging: {path: /t}"))
        #expect(moved.fixed.map(\.key) == ["staging.path", "control.socket"])
        #expect(moved.changes.isEmpty)
        let metrics = SettingsChanges(
            from: plain, to: try settings("", "metrics: {textfile: /m/a.prom, status_file: /m/s.json, every: 5s}"))
        #expect(
            metrics.changes == [
                .init(what: "metrics", name: "", kind: .changed, keys: ["textfile", "status_file", "every"])
            ])
        let lists = SettingsChanges(
            from: plain, to: try settings("", "retention: {completed: 1d, failed: 1d, cancelled: 1d, history: never}"))
        #expect(
            lists.changes == [.init(what: "retention", name: "", kind: .changed, keys: Section.retention.keys)])
        func hook(_ keys: String) throws -> Settings { try settings("", "hooks: [{name: h, \(keys)}]") }
        let told = SettingsChanges(from: plain, to: try hook("command: [/a]")).changes
        #expect(told == [.init(what: "hook", name: "h", kind: .added, keys: [])])
        // The same holds for each key of a hook except `name`, which identifies it.
        let web = "url: \"https://h/\", "
        let hookKeys = [
            ("command: [/a]", "command: [/b]", ["command"]),
            ("command: [/a]", "url: \"http://h/\"", ["command", "network", "url"]),
            ("command: [/a]", "command: [/a], network: policy", ["network"]),
            ("command: [/a], network: policy", "command: [/a], network: policy, ports: [1]", ["ports"]),
            ("command: [/a], network: policy", "command: [/a], network: policy, hosts: [a.example]", ["hosts"]),
            ("command: [/a]", "command: [/a], on: [added]", ["on"]),
            ("command: [/a]", "command: [/a], folders: [cam]", ["folders"]),
            ("command: [/a]", "command: [/a], destinations: [nas]", ["destinations"]),
            ("command: [/a]", "command: [/a], timeout: 1s", ["timeout"]),
            ("command: [/a]", "command: [/a], retry: {first: 1s}", ["retry"]),
            ("command: [/a]", "command: [/a], give_up_after: 1h", ["give_up_after"]),
            (web + "network: policy", web + "network: any", ["network"]),
            (web + "network: policy", web + "headers: {a: b}", ["headers"]),
            (web + "network: policy", web + "secret: {env: A}", ["secret"]),
            (web + "network: policy", web + "ca_file: /ca.pem", ["ca_file"]),
        ]
        for (old, new, keys) in hookKeys {
            let changes = SettingsChanges(from: try hook(old), to: try hook(new)).changes
            #expect(changes == [.init(what: "hook", name: "h", kind: .changed, keys: keys)])
        }
        #expect(Set(hookKeys.flatMap(\.2)).union(["name"]) == Set(Section.hook.keys))
        let policy = try settings(
            "",
            """
            policy: {order: oldest-first, concurrency: {total: 1}, retry: {first: 2s}, windows: ["sat 00:00-24:00"],
              quotas: [{per: hour, files: 5}], expires_after: 7d, before_upload: {command: [/bin/true]}}
            """
        )
        #expect(
            SettingsChanges(from: plain, to: policy).changes.first?.keys == [
                "concurrency", "order", "retry", "before_upload", "windows", "quotas", "expires_after",
            ])
    }

    @Test(
        "each example loads without a warning",
        arguments: [
            "sluice.yaml", "two-destinations.yaml", "move-after-upload.yaml", "cameras.yaml", "nas-folder.yaml",
            "without-copies.yaml", "by-the-clock.yaml", "metered.yaml", "recording.yaml", "hooks.yaml",
        ])
    func examples(_ name: String) throws {
        let loaded = try Settings.load(
            top.appending("config").appending(FilePath(name)), types: types, disk: .unchecked)
        #expect(loaded.warnings.isEmpty)
        #expect(!loaded.settings.folders.isEmpty)
    }
}
