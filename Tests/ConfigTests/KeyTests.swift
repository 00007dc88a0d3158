import Core
import Testing

@testable import Config

@Suite("Tables of keys")
struct KeyTests {
    private enum Use: String, CaseIterable { case allow, pause }

    private struct Camera: Equatable {
        var size: Int64 = 5
        var age: Duration?
        var names = ["a"]
        var use: Use?
        var lens = Lens()

        static let keys: [Key<Self>] = [
            Key("size", \.size, .bytes).printed { $0.size != 0 },
            Key("use", \.use).printed(after: "names"),
            Key("age", \.age, .duration(.zero ... .seconds(60))),
            Key("names", \.names, listOf: .name),
            Key("lens", .lens, Lens.keys.map { $0.of(\.lens) }, conditional: [zoom]) {
                fields, camera, readable, reading in
                if readable.contains("focus") { [zoom].read(fields, into: &camera, reading) }
            },
        ]
        static let zoom: Key<Self> = Key("zoom", \.lens.zoom, .whole(1...9)).printed { $0.lens.focus != nil }
    }

    private struct Lens: Equatable {
        var focus: Int?
        var zoom = 1

        static let keys: [Key<Self>] = [Key("focus", \.focus, .whole(1...9))]
    }

    private let findings = ProblemCollector()

    private func readCamera(_ text: String, into camera: Camera = Camera()) throws -> (
        camera: Camera, readable: Set<String>
    ) {
        findings.sources = [SourceText(file: "a.yaml", text: text)]
        let root = try #require(try NodeReader.read(Array(text.utf8), file: 0))
        let fields = MappingReader(
            root, Section(path: "", Camera.keys), path: "", start: root.start, findings: findings)
        let reading = SettingsReading(
            findings: findings, types: [], disk: Disk(checks: .unchecked), environment: { _ in nil },
            defaults: DefaultPlaces(for: "a.yaml") { _ in nil })
        var camera = camera
        let readable = Camera.keys.read(fields, into: &camera, reading)
        return (camera, readable)
    }

    private func printed(_ camera: Camera) -> [String] {
        Camera.keys.pieces(of: camera, EffectivePieces(hides: true)).map { key, piece in
            if case .value(let value, _, _) = piece { "\(key): \(value.yaml)" } else { key }
        }
    }

    @Test("a table reads what the file sets, and leaves all else as it was")
    func reading() throws {
        let earlier = Camera(size: 7, age: .seconds(3), names: ["x"], lens: Lens(zoom: 4))
        let some = try readCamera("{age: 5s, use: pause, lens: {focus: 2, zoom: 3}}", into: earlier)
        #expect(
            some.camera
                == Camera(size: 7, age: .seconds(5), names: ["x"], use: .pause, lens: Lens(focus: 2, zoom: 3)))
        #expect(some.readable == ["age", "use", "lens"])
        #expect(findings.errors.isEmpty)
        #expect(try readCamera("{lens: {zoom: 3}}", into: earlier).camera == earlier)
    }

    @Test("an unreadable value and an unknown key are reported at their places, and the others are read")
    func mistakes() throws {
        let result = try readCamera("{size: 5, names: [b, \"c d\"], lens: {focus: 10}, ages: 1s}")
        #expect(result.camera == Camera(names: ["b"]))
        #expect(result.readable == ["names", "lens"])
        #expect(
            findings.errors.map { "\($0.place) \($0.key)" } == [
                "a.yaml:1:49 ages", "a.yaml:1:8 size", "a.yaml:1:22 names[1]", "a.yaml:1:44 lens.focus",
            ])
        #expect(findings.errors.first?.text == "no setting is called `ages` here; did you mean `age`?")
    }

    @Test("values are printed in their order, without those that are not set or do not apply")
    func printing() {
        #expect(printed(Camera(use: .allow)) == ["size: 5 B", "names: [a]", "use: allow"])
        #expect(
            printed(Camera(size: 0, age: .seconds(90), lens: Lens(focus: 1))) == ["age: 1m30s", "names: [a]", "lens"])
        #expect(Lens.keys.inFile(of: Lens(focus: 1)).yaml == "{focus: 1}")
    }

    @Test("a comparison names the keys whose values differ, also of values that are not printed")
    func comparing() {
        #expect(Camera.keys.changed(from: Camera(), to: Camera()) == [])
        let other = Camera(size: 0, use: .allow, lens: Lens(zoom: 2))
        #expect(Camera.keys.changed(from: Camera(), to: other) == ["size", "use", "lens"])
        #expect(Camera.keys.map { $0.text(of: other) } == ["0", "allow", "none", "a", "none"])
    }

    @Test("keys of a part that may be absent are printed and compared with it, and not read")
    func optionalPart() {
        struct Case: Equatable { var lens: Lens? }
        let keys = (Lens.keys + [Key("zoom", \.zoom, .whole(1...9)).printed { $0.zoom != 1 }])
            .map { $0.of(optional: \Case.lens) }
        #expect(keys.inFile(of: Case()).yaml == "{}")
        #expect(keys.inFile(of: Case(lens: Lens(focus: 2))).yaml == "{focus: 2}")
        #expect(keys.inFile(of: Case(lens: Lens(focus: 2, zoom: 3))).yaml == "{focus: 2, zoom: 3}")
        #expect(keys.changed(from: Case(), to: Case()) == [])
        #expect(keys.changed(from: Case(), to: Case(lens: Lens())) == ["focus", "zoom"])
        #expect(keys.changed(from: Case(lens: Lens(focus: 1)), to: Case(lens: Lens(focus: 2))) == ["focus"])
    }

    @Test("a value that needs a restart is reported with its old and its new text, and a token without")
    func fixed() throws {
        func settings(_ more: String) throws -> Settings {
            try read("version: 1\nfolders: []\ndestinations: {}\nstate: /s\n" + more).settings
        }
        let listen = #"listen: "127.0.0.1:8484", tls: {certificate: /c.pem, key: /k.pem}"#
        let alone = try settings("control: {socket: /run/a.sock}")
        let remote = try settings("control: {socket: /run/a.sock, \(listen), tokens: [{name: me, secret: {env: A}}]}")
        let named = try settings(
            "control: {socket: /run/b.sock, \(listen), tokens: [{name: me, secret: {env: B}}], hosts: [a, b], trusted_proxies: [10.0.0.0/8]}"
        )
        #expect(
            SettingsChanges(from: alone, to: remote).fixed.map { "\($0.key): \($0.old) > \($0.new)" } == [
                "control.listen: none > 127.0.0.1:8484",
                "control.web: none > true", "control.hosts: none > ", "control.trusted_proxies: none > ",
                "control.insecure_http: none > false", "control.tokens: none > another",
                "control.tls: none > /c.pem, /k.pem",
            ])
        let plain = try settings("control: {socket: /run/a.sock, thumbnails: false}")
        #expect(SettingsChanges(from: alone, to: plain).fixed.isEmpty)
        #expect(
            SettingsChanges(from: alone, to: plain).changes == [
                SettingsChanges.Change(what: "control", name: "", kind: .changed, keys: ["thumbnails"])
            ])
        #expect(
            SettingsChanges(from: remote, to: named).fixed.map { "\($0.key): \($0.old) > \($0.new)" } == [
                "control.socket: /run/a.sock > /run/b.sock", "control.hosts:  > a, b",
                "control.trusted_proxies:  > 10.0.0.0/8", "control.tokens: what it was > another",
            ])
    }

    @Test("each key that a folder or `policy` sets is printed once")
    func everyKey() throws {
        let rules = """
            before_upload: {command: [/bin/true]}, windows: ["22:00-06:00"], bandwidth: 2 MB/s, metered: pause,
              metered_unknown: allow, networks: [{interface: eth0, metered: true}], quotas: [{per: day, bytes: 1 GB}],
              expires_after: 7d, busy: {file: /run/busy}, retry: {first: 2s},
              order: largest-first, pause: [{name: abroad, when: {roaming: true}}]
            """
        let loaded = try read(
            """
            version: 1
            destinations: {nas: {type: tus, url: "https://nas/"}}
            policy: {concurrency: {total: 1}, \(rules)}
            folders:
              - {name: a, path: /a, upload_to: [nas], key: "{name}", group: {by: stem}, require: {file: .here}, concurrency: 1,
                min_size: 1 kB, max_size: 1 GB, min_age: 1h, max_age: 2d, staging: {copy: copy}, release_unsure: keep,
                export: {command: [/bin/cp, "{input}", "{output}"], output: "{stem}.mp4"}, \(rules)}
            """)
        let paths = EffectiveConfiguration(loaded).rows.map(\.path)
        for (section, prefix) in [(Section.folder, "folders.a."), (.policy, "policy.")] {
            let keys = paths.filter { $0.hasPrefix(prefix) }.map { $0.dropFirst(prefix.count) }.filter {
                !$0.contains(".")
            }
            #expect(keys.sorted() == section.keys.map { $0[...] }.sorted())
        }
    }
}

extension Section {
    fileprivate static let lens = Section(path: "lens", keys: ["focus", "zoom"])
}
