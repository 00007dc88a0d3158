import Testing

@testable import Config

@Suite("Items of `networks`")
struct RuleShadowTests {
    private func warnings(_ items: String...) throws -> [String] {
        let text = "version: 1\nfolders: []\npolicy:\n  networks:\n" + items.map { "    - {\($0)}\n" }.joined()
        return try read(text).warnings.map { "\($0.line ?? 0):\($0.column ?? 0): \($0.key): \($0.text)" }
    }

    @Test("behind one that is about every network are warned of, with the line of that one and what to do")
    func catchAll() throws {
        #expect(
            try warnings("metered: false", #"interface: "wwan*", metered: true"#) == [
                "6:7: policy.networks[1]: never counts: `{metered: false}` in line 5 is about every network that this is about, and "
                    + "comes first; put this one before it, or take it out"
            ])
        #expect(try warnings(#"interface: "*", metered: false"#, "ssid: Guests, metered: true").count == 1)
    }

    @Test(
        "behind one that takes all that they take are warned of",
        arguments: [
            [#"interface: "wwan*", metered: true"#, "interface: wwan0, metered: false"],
            [#"interface: "ww*", allowed: false"#, #"interface: "wwan*", ssid: X, allowed: true"#],
            ["ssid: Home, metered: false", "ssid: Home, subnet: 10.0.0.0/8, metered: true"],
            ["subnet: 10.0.0.0/8, metered: false", "subnet: 10.1.0.0/16, metered: true"],
            ["roaming: true, metered: true", "roaming: true, metered: false"],
            [
                #"gateway: "02:00:00:00:00:01", metered: true"#,
                #"gateway: "02-00-00-00-00-01", interface: a, metered: false"#,
            ],
        ])
    func covered(_ items: [String]) throws { #expect(try warnings(items[0], items[1]).count == 1) }

    @Test(
        "that may be the first to say something are not",
        arguments: [
            ["metered: false", "interface: wwan0, allowed: false"],
            ["interface: wwan0, metered: true", #"interface: "wwan*", metered: false"#],
            [#"interface: "*n*", metered: true"#, #"interface: "[!n]", metered: false"#],
            ["ssid: Home, metered: false", "ssid: home, metered: true"],
            ["subnet: 10.1.0.0/16, metered: false", "subnet: 10.0.0.0/8, metered: true"],
            ["roaming: true, metered: false", "roaming: true, metered: true"],
            ["roaming: true, allowed: false", "roaming: false, allowed: true"],
        ])
    func open(_ items: [String]) throws { #expect(try warnings(items[0], items[1]).isEmpty) }

    @Test("of which another says one thing before are warned of for that alone")
    func half() throws {
        let found = try warnings("metered: false", "interface: wwan0, metered: true, allowed: false")
        #expect(found.count == 1)
        #expect(found.first?.contains("policy.networks[1]: its `metered` never counts: ") == true)
    }
}
