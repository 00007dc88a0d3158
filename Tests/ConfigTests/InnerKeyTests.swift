import Core
import Testing

@testable import Config

/// Values of one line that are read from keys of their own.
@Suite("Keys of inner sections")
struct InnerKeyTests {
    private static func printed(_ rule: String) throws -> String? {
        let loaded = try read("version: 1\nfolders: []\ndestinations: {}\npolicy: {\(rule)}")
        let name = rule.prefix { $0 != ":" }
        return EffectiveConfiguration(loaded).rows.first { $0.path == "policy.\(name)" }?.value?.yaml
    }

    @Test(
        "each key is printed as it was read, in the order of its section",
        arguments: [
            #"windows: [{between: "sat,sun 08:00-12:00", except: [2026-12-24, 2026-12-31]}]"#,
            #"windows: ["22:00-06:00"]"#,
            #"bandwidth: [{limit: 2 MB/s, when: {between: "08:00-18:00", except: [2026-12-24]}}, unlimited]"#,
            "bandwidth: [1 MB/s, {name: lte, limit: 200 kB/s, when: [{metered: true}, {roaming: true, not: {on_battery: true}}]}]",
            "metered: pause",
            "quotas: [{name: lte, per: week, starts_on: tue, bytes: 1 GB, files: 20, direction: both, when: {metered: true}}]",
            "quotas: [{per: month, starts_on: 31, files: 20}]",
            "quotas: [{per: hour, bytes: 1 GB, direction: sent}]",
            "busy: {file: /run/recording}", "busy: {command: [/bin/true, a], every: 7s, timeout: 3s}",
        ])
    func order(_ rule: String) throws {
        let value = String(rule.drop { $0 != ":" }.dropFirst(2))
        let printed = try #require(try Self.printed(rule))
        #expect(printed.filter { $0 != "\"" } == value.filter { $0 != "\"" })
    }

    @Test("what is left out has its default")
    func defaults() throws {
        #expect(try Self.printed("busy: {command: [/bin/true]}") == "{command: [/bin/true], every: 30s, timeout: 10s}")
        #expect(
            try Self.printed("quotas: [{per: week, bytes: 1 GB}]")
                == "[{per: week, starts_on: mon, bytes: 1 GB, direction: sent}]")
        #expect(try Self.printed("quotas: [{per: day, files: 3}]") == "[{per: day, files: 3}]")
    }

    @Test("a secret is read and printed in each of its forms", arguments: SecretForm.allCases)
    func secrets(_ form: SecretForm) throws {
        let value = form == .command ? "[/bin/true]" : form == .file ? "/etc/hostname" : "NAME"
        let loaded = try read(
            """
            version: 1
            folders: []
            destinations: {nas: {type: tus, url: "https://nas/", token: {\(form.rawValue): \(value)}}}
            """)
        let row = EffectiveConfiguration(loaded).rows.first { $0.path == "destinations.nas.token" }
        #expect(row?.value?.yaml == "{\(form.rawValue): \(form == .literal ? "hidden" : value)}")
    }
}
