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
            "nas: {type: tus, note: \"bob:hunter2@127.0.0.1:3128\", x: 1}",
            "nas: {type: tus, note: bob:hunter2@127.0.0.1:3128, x: 1",
            "nas: {type: tus, note: \"bob:hunter2@\\x31\", x: 1}",
            "nas: {type: tus, url: \"https://nas/files#hunter2\", x: 1}",
            "nas: {type: tus, url: \"https://nas/files#hunter2\", x: 1",
            "nas: {type: tus, proxy: \"http://h:3128/hunter2?x=hunter2\", x: 1}",
            "nas: {type: tus, http: {proxy: \"http://h:3128#hunter2\", x: 1}}",
            "nas: {type: tus, note: /x?token=hunter2, x: 1", "nas: {type: tus, x: 1} # /x?token=hunter2",
        ])
    func hidden(_ destination: String) {
        let answer = objections(to: "version: 1\ndestinations:\n  \(destination)")
        #expect(!answer.isEmpty)
        #expect(!answer.contains("hunter2"), "\(answer)")
    }

    @Test(
        "a secret that YAML takes for a key, an anchor or a tag is in no message",
        arguments: [
            "token: {literal:hunter2}", "token: {hunter2}", "token: {literal: SECRET,hunter2}",
            "token: {literal: SECRET,hunter2,hunter2}", "token: {\"hunter2\"}", "token: {hunter2: x}",
            "token: {literal: *hunter2}", "token: {literal: !hunter2 x}", "token: {literal: &hunter2 [x]}",
            "tokn: {literal:hunter2}", "tokn: {hunter2}", "token hunter2", "hunter2", "http: {token hunter2}",
            "http: {headers: {Authorization Bearer hunter2}}", "headers: {hunter2}", "headers: {\"X hunter2\": x}",
            "headers: {X-A: {literal:hunter2}}", "headers: {X-A: *hunter2}", "headers: {X-A: hunter2: x}",
            "headers: {X-A: !hunter2 x}", "headers: {a hunter2: 1, a hunter2: 2}", "headers: hunter2",
            "http: {auth: bearer hunter2}", "http: {auth: hunter2}", "http: {auth: [bearer, hunter2]}",
            "http: {auth: {bearer: hunter2}}", "http: {user: \"me:hunter2\", x: 1}",
            "http: {auth: bearer hunter2: x}", "allow_origins: [\"ftp://me:hunter2@nas\"]",
        ])
    func unreadable(_ keys: String) {
        let answer = objections(
            to: "version: 1\ndestinations:\n  nas: {type: tus, url: \"https://nas/\", \(keys)}")
        #expect(!answer.isEmpty)
        #expect(!answer.contains("hunter2"), "\(answer)")
    }

    @Test(
        "a secret in a file that is no YAML is in no excerpt, whatever words it has and however it is indented",
        arguments: [
            "    headers:\n      X-A: token-hunter2: x", "    headers: {\n    X-A: hunter2: x}",
            "    headers: {X-B: {file: /b},\n  X-A: hunter2: x}", "    token hunter2: [",
            "    http:\n      auth: a: hunter2", "    token:\n      literal: *hunter2",
            "    headers:\n      X-A: !secret-hunter2 x",
        ])
    func unparsed(_ lines: String) {
        let answer = objections(
            to: "version: 1\ndestinations:\n  nas:\n    type: tus\n    url: https://nas/\n\(lines)")
        #expect(!answer.isEmpty)
        #expect(!answer.contains("hunter2"), "\(answer)")
    }

    @Test(
        "a secret is hidden also outside of a destination",
        arguments: [
            "control: {token: hunter2}", "control: {tokn: hunter2}", "control: {token: {hunter2}}",
            "control: {token: {literal:hunter2}}", "control: [token, {token: hunter2}]",
            "hooks: [{url: \"https://h/\", secret: hunter2}]", "hooks: [{url: \"https://h/\", sceret: hunter2}]",
            "hooks: {url: \"https://h/\", secret: hunter2}", "hooks: [{url: \"https://h/\", headers: {a b: hunter2}}]",
            "hooks: [{url: \"https://h/\", headers: {Authorization Bearer hunter2}}]",
            "hooks: [{url: \"https://h/\", headers: [hunter2]}]", "hooks: [{command: /bin/tell hunter2}]",
            "destinations: [{type: tus, token: hunter2}]", "destinations: {type: tus, token: hunter2}",
            "destination: {nas: {type: tus, token: hunter2}}", "token: hunter2", "policy: {password: hunter2}",
            "state: \"ftp://me:hunter2@nas/\"", "state: \"x?token=hunter2\"", "\"ftp://me:hunter2@nas/\": 1",
        ])
    func elsewhere(_ line: String) {
        let answer = objections(to: "version: 1\n\(line)")
        #expect(!answer.isEmpty)
        #expect(!answer.contains("hunter2"), "\(answer)")
    }

    @Test("a value of a header that YAML reads in two ways is not repeated")
    func ambiguous() {
        let answer = objections(
            to: "version: 1\ndestinations: {nas: {type: tus, url: \"https://nas/\", headers: {X-Pin: 0123}}}")
        #expect(answer.contains("destinations.nas.headers.X-Pin: takes a text"), "\(answer)")
        #expect(answer.contains("put it in quotes") && !answer.contains("0123") && !answer.contains("83"), "\(answer)")
    }

    @Test(
        "a mistake beside a secret still says what to correct",
        arguments: [
            ("token: {literal:hunter2}", "destinations.nas.token: needs a blank after `literal:`"),
            ("token: {literal hunter2}", "destinations.nas.token: needs a colon after `literal`"),
            ("token: {hunter2}", "destinations.nas.token: has a key that is not allowed here"),
            ("token: {litreal: hunter2}", "destinations.nas.token.litreal: no setting is called `litreal` here; did"),
            ("token: {literal: a,b c}", "A text with a comma or a colon needs quotes"),
            ("http: {auth: baerer}", "not `baerer`; did you mean `bearer`?"),
            ("http: {auth: Bearer hunter2}", "takes one of basic, bearer, digest; what is written here is not shown"),
            ("headers: {X-A: }", "destinations.nas.headers.X-A: has no value"),
            ("headers: {X A: 1}", "destinations.nas.headers: takes a header's name"),
        ])
    func advice(_ keys: String, _ words: String) {
        let answer = objections(
            to: "version: 1\ndestinations: {nas: {type: tus, url: \"https://nas/\", \(keys)}}")
        #expect(answer.contains(words), "\(answer)")
    }

    @Test("a secret in an address does not hide other mistakes of its line")
    func rest() {
        let answer = objections(
            to: "version: 1\ndestinations:\n  nas: {type: tus, note: \"/x?apikey=hunter2&n=5\", x: 1}")
        #expect(answer.contains("  nas: {type: tus, note: \"/x?apikey=*******&n=5\", x: *}"), "\(answer)")
        let other = objections(
            to:
                "version: 1\ndestinations:\n  nas: {type: tus, note: \"bob:hunter2@h:3128\", url: \"https://h/#a\", x: 1}"
        )
        #expect(other.contains("note: \"***********@h:3128\", url: \"https://h/#*\", x: *}"), "\(other)")
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
