import Core
import Testing

@testable import Config

@Suite("Rules with conditions in the configuration")
struct ConditionReadingTests {
    private static let rest = """
        folders:
          - {name: door, path: /srv/door, upload_to: [nas], pause: [{name: own, when: {on_battery: true}}]}
          - {name: garden, path: /srv/garden, upload_to: [nas]}
        destinations:
          nas: {type: tus, url: "https://nas.example/files"}

        """

    private func rules(_ pause: String) throws -> [PauseRule] {
        try load(pause).settings.policy.rules.pauses
    }

    private func load(_ pause: String) throws -> LoadedSettings {
        try read(
            "version: 1\n" + Self.rest + """
                policy:
                  networks: [{name: lte, interface: "wwan*"}, {name: home, ssid: Home}, {name: home, ssid: Attic}]
                  pause:
                \(pause)
                """)
    }

    @Test("a mapping is all of its lines, a list any of its items, and `not` none of them")
    func grammar() throws {
        let rule = try #require(
            rules(
                """
                  - name: lte-by-night
                    when: {network: lte, not: [{between: "22:00-06:00", except: [2026-12-24]}, {folder: [door, garden]}]}
                    override: never
                """
            ).first)
        #expect(rule.name == "lte-by-night" && rule.override == .never && rule.place == "a.yaml:10")
        let christmas = try #require(CivilDay(year: 2026, month: 12, day: 24))
        let night = Window(from: 22 * 60, to: 6 * 60, except: [christmas])
        #expect(
            rule.when
                == .all([
                    .fact(.network(["lte"])),
                    .not(.any([.fact(.between([night])), .fact(.folder(["door", "garden"]))])),
                ]))
        let either = try #require(
            rules("  - {name: a, when: [{metered: true}, {roaming: true, on_battery: false}]}").first)
        #expect(
            either.when
                == .any([.fact(.metered(true)), .all([.fact(.roaming(true)), .fact(.onBattery(false))])]))
    }

    @Test("`sluice config` prints the rules so that they are read as the same again")
    func written() throws {
        let text = """
              - {name: a, when: {between: ["22:00-06:00", "sat,sun 00:00-24:00"], except: [2026-12-24]}}
              - {name: b, when: [{interface: ["eth*", wlan0], not: {ssid: ["My \\"Wi-Fi\\"", Home]}}, {battery_below: 30%}]}
              - {name: c, when: {gateway: "0c:5b:8f:27:9a:64", destination: nas, not: {not: {metered: false}}}, override: never}
              - {name: d, when: {network: [lte, home], folder: garden, roaming: true, on_battery: true}}
              - {name: e, when: [{larger_than: 100 MB, kind: [audio, video]}, {smaller_than: 8 MiB, longer_than: 1m30s}]}
              - {name: f, when: {lan: false, hotter_than: 70}}
            """
        let loaded = try load(text)
        let again = try read(EffectiveConfiguration(loaded).yaml)
        #expect(again.settings.policy.rules == loaded.settings.policy.rules)
        #expect(again.settings.folders.map(\.policy.rules) == loaded.settings.folders.map(\.policy.rules))
        #expect(loaded.settings.policy.rules.pauses.count == 6)
        #expect(loaded.settings.fileQuestions.count == 4)
    }

    private func routes(_ text: String) throws -> LoadedSettings {
        try read(
            "version: 1\nfolders: [{name: door, path: /srv/door, upload_to: \(text)}]\ndestinations:\n"
                + ["nas", "cloud"].map { "  \($0): {type: tus, url: \"https://\($0).example/files\"}\n" }.joined())
    }

    @Test("an item of `upload_to` may have a condition about the file, and is printed with it")
    func uploadTo() throws {
        let loaded = try routes("[nas, {to: cloud, if: [{kind: video, longer_than: 10s}, {larger_than: 1 MB}]}]")
        let folder = try #require(loaded.settings.folders.first)
        let when = Condition.any([
            .all([.fact(.file(.kind([.video]))), .fact(.file(.longerThan(10_000)))]),
            .fact(.file(.largerThan(1_000_000))),
        ])
        #expect(folder.routes == [UploadRoute(to: "nas"), UploadRoute(to: "cloud", when: when)])
        #expect(try read(EffectiveConfiguration(loaded).yaml).settings.folders.first?.routes == folder.routes)
        func taken(_ kind: FileKind, _ duration: Int64?) -> [String] {
            folder.routes(for: FileFacts(size: 1, kind: kind, duration: duration)).flatMap(\.destinations)
        }
        #expect(taken(.photo, nil) == ["nas"])
        #expect(taken(.video, 9_000) == ["nas"])
        #expect(taken(.video, nil) == ["nas", "cloud"])
        #expect(try routes("{to: cloud, if: {kind: photo}}").settings.folders.first?.uploadTo == ["cloud"])
    }

    @Test("an item of `upload_to` may name several destinations of which one is enough, and is printed with them")
    func alternatives() throws {
        let loaded = try routes("[{first_of: [nas, cloud], after: 6h, if: {kind: video}}]")
        let folder = try #require(loaded.settings.folders.first)
        let hours = Duration.seconds(6 * 3600)
        #expect(
            folder.routes
                == [UploadRoute(firstOf: ["nas", "cloud"], after: hours, when: .fact(.file(.kind([.video]))))])
        #expect(folder.uploadTo == ["nas", "cloud"])
        let yaml = EffectiveConfiguration(loaded).yaml
        #expect(yaml.contains("first_of: [nas, cloud], after: 6h"))
        #expect(try read(yaml).settings.folders.first?.routes == folder.routes)
        #expect(
            folder.routes(to: ["cloud", "gone"]) == [
                UploadRoute(firstOf: ["cloud"], after: hours, when: .fact(.file(.kind([.video])))),
                UploadRoute(to: "gone"),
            ])
    }

    @Test(
        "a mistake in an item of `upload_to` is reported at its place",
        arguments: [
            ("[{to: cloud}]", "upload_to[0].if: `if` is missing; say which files go there"),
            ("[{if: {kind: video}}]", "upload_to[0].to: `to` is missing; name the destination"),
            ("[nas, {to: cluod, if: {kind: video}}]", "no destination is called `cluod`; did you mean `cloud`?"),
            ("[nas, {to: nas, if: {kind: video}}]", "`nas` is named twice"),
            ("[{to: nas, if: {metered: true}}]", "upload_to[0].if: asks for more than the file"),
            ("[{to: nas, when: {kind: video}}]", "no setting is called `when` here"),
            ("[[nas]]", "takes a name"),
            ("[{first_of: [nas, cloud]}]", "upload_to[0].after: `after` is missing; say how long a file waits"),
            ("[{first_of: [nas], after: 6h}]", "upload_to[0].first_of: names fewer than two destinations"),
            ("[{first_of: nas, after: 6h}]", "upload_to[0].first_of: takes a list"),
            ("[{first_of: [nas, nas], after: 6h}]", "upload_to[0].first_of[1]: `nas` is named twice"),
            ("[cloud, {first_of: [nas, cloud], after: 6h}]", "upload_to[1].first_of[1]: `cloud` is named twice"),
            ("[{first_of: [nas, cluod], after: 6h}]", "upload_to[0].first_of[1]: no destination is called `cluod`"),
            ("[{first_of: [nas, cloud], after: 0s}]", "upload_to[0].after: "),
            ("[{first_of: [nas, cloud], to: nas, after: 6h}]", "upload_to[0].to: goes without `first_of`"),
            ("[{to: nas, if: {kind: video}, after: 6h}]", "upload_to[0].after: belongs to `first_of: [nas, cloud]`"),
        ])
    func mistakenRoute(_ text: String, _ message: String) {
        #expect { _ = try routes(text) } throws: { "\($0)".contains(message) }
    }

    @Test(
        "a mistake in a condition is reported at its place, with the remedy",
        arguments: [
            ("{name: a, when: {larger_than: 20}}", "pause[0].when.larger_than: takes an amount with its unit"),
            ("{name: a, when: {kind: film}}", "pause[0].when.kind: takes one of video, photo, audio, other"),
            ("{name: a, when: {kind: []}}", "pause[0].when.kind: lists nothing, so it would never hold"),
            ("{name: a, when: {longer_than: 10}}", "pause[0].when.longer_than: takes a length of time with its unit"),
            (
                "{name: a, when: [\((1...33).map { "{larger_than: \($0) MB}" }.joined(separator: ", "))]}",
                ":10:1: policy: all conditions together ask 33 different questions about files"
            ),
            ("{when: {roaming: true}}", "pause[0].name: `name` is missing; messages name the rule"),
            ("{name: a}", "pause[0].when: `when` is missing; say what is not sent"),
            ("{name: a, when: {}}", "pause[0].when: is empty, so it would always hold"),
            ("{name: a, when: []}", "pause[0].when: lists nothing, so it would never hold"),
            (
                "{name: a, when: {metered: true, not: []}}",
                "pause[0].when.not: lists nothing, so it would always hold"
            ),
            (
                "{name: a, when: {kind: video}}\n  busy: {file: /run/b, when: {metered: true}}",
                "`busy` takes no condition"
            ),
            (
                "{name: a, when: {kind: video}}\n  before_upload: {command: [/bin/true], when: {metered: true}}",
                "`before_upload` takes no condition"
            ),
            ("{name: a, when: [{}]}", "pause[0].when[0]: is empty, so it would always hold"),
            ("{name: a, when: night}", "pause[0].when: takes a condition, like"),
            (
                "{name: a, when: {network: let}}",
                "pause[0].when.network: no network is called `let`; did you mean `lte`?"
            ),
            ("{name: a, when: {network: []}}", "pause[0].when.network: lists nothing, so it would never hold"),
            ("{name: a, when: {between: []}}", "pause[0].when.between: lists nothing, so it would never hold"),
            ("{name: a, when: {folder: dor}}", "pause[0].when.folder: no folder is called `dor`; did you mean `door`?"),
            ("{name: a, when: {destination: nsa}}", "pause[0].when.destination: no destination is called `nsa`"),
            ("{name: a, when: {except: [2026-12-24]}}", "pause[0].when.except: belongs to `between`"),
            (
                "{name: a, when: {not: {not: {not: {roaming: true}}}}}",
                "pause[0].when.not.not.not: is more than 3 levels deep"
            ),
            ("{name: a, when: {metred: true}}", "pause[0].when.metred: no setting is called `metred` here"),
            ("{name: a, when: {windows: [\"22:00-06:00\"]}}", "in a condition, the time is `between"),
            ("{name: a, when: {roaming: true}, override: no}", "pause[0].override: "),
            (
                "{name: a, when: {roaming: true}}\n    - {name: a, when: {metered: true}}",
                "pause[1].name: another rule of this list"
            ),
        ])
    func mistakes(_ rule: String, _ answer: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try load("    - " + rule) }
        #expect(errors.description.contains(answer), "\(errors)")
        #expect(errors.problems.allSatisfy { $0.line != nil })
    }

    @Test(
        "a condition that never holds, or always, is warned of at its place",
        arguments: [
            (
                "{larger_than: 100 MB, smaller_than: 20 MB}",
                "10:21: policy.pause[0].when: can never be true: it is never so that the file is larger than 100 MB, and "
                    + "the file is smaller than 20 MB"
            ),
            (
                "{kind: photo, longer_than: 10s}",
                "10:21: policy.pause[0].when: can never be true: it is never so that the file is of the kind photo, and the "
                    + "recording is longer than 10s"
            ),
            (
                "{between: \"08:00-12:00\", not: {between: \"06:00-18:00\"}}",
                "10:21: policy.pause[0].when: can never be true: it is never so that it is between 08:00-12:00, and not (it "
                    + "is between 06:00-18:00)"
            ),
            (
                "[{roaming: true}, {metered: true, not: {metered: true}}]",
                "10:39: policy.pause[0].when[1]: can never be true: it is never so that the network is metered, and not "
                    + "(the network is metered)"
            ),
            (
                "[{folder: door, destination: nas, not: {destination: nas}}, {smaller_than: 0}]",
                "10:21: policy.pause[0].when: can never be true: none of its parts can"
            ),
            (
                "[{metered: true}, {metered: false}]",
                "10:21: policy.pause[0].when: is always true, so it distinguishes nothing: state when it is not, or take it out"
            ),
            (
                "{not: {hotter_than: 70, not: {hotter_than: 60}}}",
                "10:21: policy.pause[0].when: is always true, so it distinguishes nothing: state when it is not, or take it out"
            ),
            (
                "{network: lte, interface: eth0}",
                "10:21: policy.pause[0].when: is true only on a route that runs over two interfaces, as a tunnel may: the "
                    + "network is lte, and the interface is eth0"
            ),
        ])
    func pointless(_ when: String, _ wanted: String) throws {
        let warnings = try load("  - {name: a, when: \(when)}").warnings
        #expect(warnings.map { "\($0.line ?? 0):\($0.column ?? 0): \($0.key): \($0.text)" } == [wanted])
    }

    @Test("a condition that may hold is not warned of, and one of `upload_to` concerns files alone")
    func sensible() throws {
        for when in [
            "{network: home, interface: eth0}", "{network: [lte, home], interface: eth0}",
            "{folder: [door, garden], not: {folder: door}}", "[{larger_than: 1 MB}, {smaller_than: 2 MB}]",
            "{interface: [\"eth*\"], not: {interface: eth0}}", "{ssid: Home, not: {ssid: Attic}}",
        ] { #expect(try load("  - {name: a, when: \(when)}").warnings.isEmpty, "\(when)") }
        let all = try routes("[nas, {to: cloud, if: [{larger_than: 1 MB}, {smaller_than: 2 MB}]}]").warnings
        #expect(all.map(\.key) == ["folders[0].upload_to[1].if"])
        #expect(all.first?.text.hasPrefix("is always true") == true)
    }

    @Test("a folder or a destination does not name itself; a named network is told from others")
    func places() throws {
        let own = """
            version: 1
            folders: [{name: door, path: /srv/door, upload_to: [nas], pause: [{name: a, when: {folder: door}}]}]
            destinations: {nas: {type: tus, url: "https://nas.example/", pause: [{name: a, when: {destination: nas}}]}}
            policy: {networks: [{name: all}]}
            """
        let errors = try #require(throws: ConfigErrors.self) { try read(own) }.description
        #expect(errors.contains("folders[0].pause[0].when.folder: is the folder that has this rule"))
        #expect(errors.contains("destinations.nas.pause[0].when.destination: is the destination that has this rule"))
        #expect(errors.contains("policy.networks[0].name: names every network"))
    }

    @Test("a rule is the same when it moves to another line")
    func moved() throws {
        let one = try rules("  - {name: a, when: {roaming: true}}")
        let other = try rules("  # a comment\n  - {name: a, when: {roaming: true}}")
        #expect(one == other && one.first?.place != other.first?.place)
    }
}
