import Testing

@testable import Config

@Suite("Items of `networks`")
struct ShadowedRuleCheckTests {
    private func warnings(_ items: String...) throws -> [String] {
        let text = "version: 1\nfolders: []\npolicy:\n  networks:\n" + items.map { "    - {\($0)}\n" }.joined()
        return try read(text).warnings.map { "\($0.line ?? 0):\($0.column ?? 0): \($0.key): \($0.text)" }
    }

    @Test("an item after one that matches every network causes a warning, with the line of that one and a remedy")
    func catchAll() throws {
        #expect(
            try warnings("metered: false", #"interface: "wwan*", metered: true"#) == [
                "6:7: policy.networks[1]: never applies: `{metered: false}` in line 5 is about every network that this rule is about, and "
                    + "comes first; put this rule before it, or remove it"
            ])
        #expect(try warnings(#"interface: "*", metered: false"#, "ssid: Guests, metered: true").count == 1)
    }

    @Test(
        "an item after one that matches all of its networks causes a warning",
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

    @Test("an item covered by several earlier ones together causes a warning that names all of them")
    func together() throws {
        #expect(
            try warnings(
                "subnet: 10.0.0.0/9, metered: false", "subnet: 10.128.0.0/9, metered: true",
                "subnet: 10.0.0.0/8, metered: true") == [
                    "7:7: policy.networks[2]: never applies: `{subnet: \"10.0.0.0/9\", metered: false}` in line 5 and "
                        + "`{subnet: \"10.128.0.0/9\", metered: true}` in line 6 together are about every network "
                        + "that this rule is about, and come first; put this rule before them, or remove it"
                ])
        #expect(
            try warnings(
                "subnet: 0.0.0.0/1, metered: false", "subnet: 128.0.0.0/2, metered: false",
                "subnet: 192.0.0.0/2, metered: false", "ssid: X, subnet: 0.0.0.0/0, metered: true"
            ).count == 1)
        #expect(
            try warnings(
                "interface: eth0, metered: false", "interface: ETH1, metered: true",
                #"interface: "eth[01]", metered: true"#
            ).count == 1)
        #expect(
            try warnings(
                #"interface: "wwan[0-3]", metered: true"#, "interface: wwan4, metered: true",
                #"interface: "wwan[0-4]", metered: false"#
            ).count == 1)
    }

    @Test(
        "an item that earlier ones cover only partly causes no warning",
        arguments: [
            // A network without a modem matches neither.
            ["roaming: true, metered: true", "roaming: false, metered: false", "interface: eth0, metered: true"],
            ["roaming: true, metered: true", "roaming: false, metered: false", "metered: false"],
            [
                "subnet: 10.0.0.0/9, metered: false", "subnet: 10.128.0.0/10, metered: true",
                "subnet: 10.0.0.0/8, metered: true",
            ],
            [
                "subnet: 10.0.0.0/9, metered: false", "subnet: 10.128.0.0/9, allowed: false",
                "subnet: 10.0.0.0/8, metered: true",
            ],
            [
                "interface: eth0, metered: false", "interface: eth1, metered: true",
                #"interface: "eth[0-2]", metered: true"#,
            ],
            [
                "interface: eth0, metered: false", "interface: eth1, metered: true",
                #"interface: "eth[!01]", metered: true"#,
            ],
            [
                #"interface: "e*", metered: false"#, #"interface: "w*", metered: true"#,
                #"interface: "*", metered: true"#,
            ],
        ])
    func left(_ items: [String]) throws { #expect(try warnings(items[0], items[1], items[2]).isEmpty) }

    @Test("items are split no further than useful, however odd the list")
    func bounded() throws {
        let narrow = (0..<60).map { "subnet: 10.\($0 * 4).0.0/30, metered: false" }
        let text =
            "version: 1\nfolders: []\npolicy:\n  networks:\n"
            + (narrow + ["subnet: 0.0.0.0/0, metered: true"])
            .map { "    - {\($0)}\n" }.joined()
        #expect(try read(text).warnings.isEmpty)
    }

    @Test(
        "an item that may be the first to decide causes no warning",
        arguments: [
            ["metered: false", "interface: wwan0, allowed: false"],
            ["interface: wwan0, metered: true", #"interface: "wwan*", metered: false"#],
            // Names of interfaces differ in letters besides those of ASCII.
            [#"interface: "É*", metered: true"#, #"interface: "é?", metered: false"#],
            [#"interface: "*n*", metered: true"#, #"interface: "[!n]", metered: false"#],
            ["ssid: Home, metered: false", "ssid: home, metered: true"],
            ["subnet: 10.1.0.0/16, metered: false", "subnet: 10.0.0.0/8, metered: true"],
            ["roaming: true, metered: false", "roaming: true, metered: true"],
            ["roaming: true, allowed: false", "roaming: false, allowed: true"],
        ])
    func open(_ items: [String]) throws { #expect(try warnings(items[0], items[1]).isEmpty) }

    @Test("an item with one of several settings decided earlier causes a warning for that setting only")
    func half() throws {
        let found = try warnings("metered: false", "interface: wwan0, metered: true, allowed: false")
        #expect(found.count == 1)
        #expect(found.first?.contains("policy.networks[1]: its `metered` never applies: ") == true)
    }
}
