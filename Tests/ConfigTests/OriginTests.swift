import Core
import Testing

@testable import Config

@Suite("Lists of origins")
struct OriginTests {
    private func text(_ item: String) -> String {
        minimal.replacing("files\"}", with: "files\", allow_origins: [\(item)]}")
    }

    @Test(
        "an origin has scheme, host and port",
        arguments: [
            "https://uploads.example.com", "https://uploads.example.com:8443", "HTTPS://Uploads.Example.com",
            "http://127.0.0.1:8080", "\"https://[2001:db8::1]:8443\"",
        ])
    func taken(_ item: String) throws {
        let loaded = try read(text(item))
        let values = loaded.settings.destinations.first?.values
        #expect(values?["allow_origins"] == .texts([item.filter { $0 != "\"" }]))
        #expect(loaded.warnings.isEmpty)
    }

    @Test("the list may be empty, and an unencrypted origin causes a warning at its place")
    func plain() throws {
        #expect(try read(text("")).settings.destinations.first?.values["allow_origins"] == .texts([]))
        let warnings = try read(text("https://a.test, http://b.test")).warnings
        #expect(
            warnings.map { "\($0.place) \($0.key): \($0.text)" } == [
                "a.yaml:7:86 destinations.nas.allow_origins[1]: the connection is not encrypted; use https if the server can"
            ])
    }

    @Test(
        "a wrong origin is reported with the correct form",
        arguments: [
            ("https://a.test/files", 84, "has something after its host, where an origin ends; write `https://a.test`"),
            ("https://a.test/", 84, "has something after its host, where an origin ends; write `https://a.test`"),
            ("\"https://a.test?x\"", 85, "has something after its host, where an origin ends; write `https://a.test`"),
            ("\"https://*.a.test\"", 70, "has a `*`, but wildcards are not supported here; write each origin"),
            ("https://me:pw@a.test", 70, "has a user or password in it"),
            ("a.test", 70, "takes an origin like `https://uploads.example.com` or `https://uploads.example.com:8443`;"),
            ("ftp://a.test", 70, "takes an origin like `https://uploads.example.com` or"),
            ("https://", 78, "has no valid host"), ("https://a.test:0", 85, "has no valid port"),
            ("https://a.test:99999", 85, "has no valid port"),
            ("https://\u{e4}.test", 70, "has a space or a character"),
            ("\"https://a.test#x\"", 70, "has a `#`"), ("{a: b}", 70, "takes an origin like"),
        ] as [(String, Int, String)])
    func mistakes(_ item: String, _ column: Int, _ words: String) {
        let said = objections(to: text(item))
        #expect(said.hasPrefix("a.yaml:7:\(column): destinations.nas.allow_origins[0]: \(words)"), "\(said)")
    }

    @Test("the value must be a list")
    func list() {
        let said = objections(to: text("x").replacing("[x]", with: "https://a.test"))
        #expect(
            said.hasPrefix(
                "a.yaml:7:69: destinations.nas.allow_origins: takes a list, like `[a, b]`, not a single value"),
            "\(said)")
    }
}
