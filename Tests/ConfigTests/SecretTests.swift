import Core
import Testing

@testable import Config

@Suite("Secrets")
struct SecretTests {
    @Test(
        "a secret is never shown, whatever else is wrong with its line",
        arguments: [
            "nas: {type: tus, token: hunter2}", "nas: {type: tus, tokn: hunter2}", "nas: {typ: tus, token: hunter2}",
            "nas: {type: tsu, password: hunter2, x: 1}", "nas: {type: tus, busy: {command: [/bin/x, hunter2]}, x: 1}",
            "nas: {type: tus, busy: {command: [/bin/x, hunter2], x: 1}",
            "nas: {type: tus, token: {literal: hunter2}, x: 1}",
            "nas: {type: tus, token: {literal: [hunter2]}, x: 1}",
            "nas: {type: tus, token: {file: /x, litreal: hunter2}}",
            "nas: {type: tus, url: \"https://user:hunter2@nas/\"}",
            "nas: {type: tus, note: \"http://u:hunter2@h\", x: 1}",
            "nas: {type: tus, headers: {Authorization: hunter2, a b: c}, x: 1}",
            "nas: {type: tus, headers: [hunter2], x: 1}", "nas: {type: tus, token: [hunter2]}",
            "nas: {type: tus, token: {literal: hunter2}", "nas: {type: tus, token: hunter2: x}",
            "nas: {type: tus, headers: {Authorization: \"hunter2\"\"}}",
            "nas: {type: tus, token: {command: [/usr/bin/echo, hunter2]}, x: 1}",
            "nas: {type: tus, url: https://h/, token: &t {literal: hunter2}, x: 1}",
            "nas:\n    token:\n\n      - hunter2: [",
            "nas:\n    headers:\n      X: |\n        hunter2\n\t  hunter2: \t[",
            "nas: {type: tus, token: |\n    hunter2\n  , x: 1}",
            "nas: {type: tus, note: \"/x/{a}?apikey=hunter2\", x: 1}",
            "nas: {type: tus, note: /x?a=b&key=hunter2&c=d, x: 1}",
            "nas: {type: tus, note: \"/x?apikey\\x3dhunter2\", x: 1}",
            "nas: {type: tus, note: \"/x?api\\\nkey=hunter2\", x: 1}",
            "nas: {type: tus, note: /x?token=hunter2, x: 1", "nas: {type: tus, x: 1} # /x?token=hunter2",
        ])
    func hidden(_ destination: String) {
        let answer = objections(to: "version: 1\ndestinations:\n  \(destination)")
        #expect(!answer.isEmpty)
        #expect(!answer.contains("hunter2"))
    }

    @Test("a secret in an address does not hide other mistakes of its line")
    func rest() {
        let answer = objections(
            to: "version: 1\ndestinations:\n  nas: {type: tus, note: \"/x?apikey=hunter2&n=5\", x: 1}")
        #expect(answer.contains("  nas: {type: tus, note: \"/x?apikey=*******&n=5\", x: *}"), "\(answer)")
    }

    @Test("a secret is accepted in each of its forms")
    func forms() throws {
        func token(_ text: String) throws -> SettingValue? {
            try read("version: 1\ndestinations: {nas: {type: tus, url: \"https://nas/\", token: \(text)}}")
                .settings.destinations.first?.values["token"]
        }
        #expect(try token("{file: /a//b}") == .secret(.file("/a/b")))
        #expect(try token("{env: TOKEN}") == .secret(.environment("TOKEN")))
        #expect(try token("{credential: nas}") == .secret(.credential("nas")))
        #expect(try token("{command: [/bin/pass, show]}") == .secret(.command(["/bin/pass", "show"])))
        #expect(try token("{literal: \"no\"}") == .secret(.literal("no")))
    }

    @Test("a secret has exactly one form", arguments: ["{}", "{file: /a, env: B}"])
    func oneForm(_ form: String) {
        let answer = objections(
            to: "version: 1\ndestinations: {nas: {type: tus, url: \"https://nas/\", token: \(form)}}")
        #expect(answer.contains("destinations.nas.token: takes exactly one of `{file:"))
    }

    @Test("a secret in a header causes a warning, and so does one over http")
    func warnings() throws {
        let loaded = try read(
            """
            version: 1
            folders: []
            destinations:
              a: {type: tus, url: "http://nas.example/", token: {file: /t}, headers: {X-A: plain, X-Auth: b}}
              b: {type: tus, url: "http://localhost:1080/", token: {file: /t}}
            """)
        #expect(
            loaded.warnings.map { "\($0.place) \($0.key)" } == [
                "a.yaml:4:23 destinations.a.url", "a.yaml:4:95 destinations.a.headers.X-Auth",
            ])
        #expect(
            loaded.settings.destinations[0].values["headers"]
                == .map(["X-A": .literal("plain"), "X-Auth": .literal("b")]))
    }
}
