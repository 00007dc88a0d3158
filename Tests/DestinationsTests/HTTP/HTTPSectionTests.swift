import Core
import Testing

@testable import Config
@testable import Destinations

/// Texts of configurations, with the types of the program.
@Suite("The section `http` in a configuration")
struct HTTPSectionTests {
    private func load(_ destination: String) throws(ConfigErrors) -> LoadedSettings {
        let text = "version: 1\nfolders: []\ndestinations:\n  a: {\(destination)}"
        return try Settings.read(
            [("a.yaml", Array(text.utf8))], types: DestinationTable.builtIn.map(\.type), disk: .unchecked
        ) { _ in nil }
    }

    private func errors(_ destination: String) -> [String] {
        do throws(ConfigErrors) {
            _ = try load(destination)
            return []
        } catch { return error.problems.map { "\($0.place) \($0.key): \($0.text)\n\($0.excerpt ?? "")" } }
    }

    private static let pin = "\"sha256//" + base64([UInt8](repeating: 7, count: 32)) + "\""

    @Test(
        "a key of TLS at an address without it is a mistake, at the place of the key",
        arguments: [
            "ca_file: /ca.pem", "tls_min: TLSv1.3", "pinned_keys: [\(pin)]", "client_certificate: /c.pem",
            "ca_file: /ca.pem, proxy: \"https://proxy.example:3128\"",
            "pinned_keys: [\(pin)], proxy: \"https://proxy.example:3128\"",
        ])
    func unencrypted(_ keys: String) {
        let destinations = [
            "type: tus, url: \"http://nas.example/\"", "type: resumable-http, url: \"HTTP://nas.example/\"",
            "type: chunked-form, preset: flow, url: \"http://nas.example/\"",
            "type: vimeo, token: {env: T}, url: \"http://nas.example/\"",
            "type: s3, bucket: clips, access_key: {env: A}, secret_key: {env: S}, endpoint: \"http://nas.example\"",
            "type: oss, bucket: clips, region: cn-shanghai, access_key: {env: A}, secret_key: {env: S}, "
                + "endpoint: \"http://nas.example\"",
            "type: tus, url: \"http://nas.example/\", allow_origins: [\"http://up.example\"]",
        ]
        let key = keys.prefix { $0 != ":" }
        for destination in destinations {
            let found = errors("\(destination), http: {\(keys)}")
            #expect(found.count == 1, "\(found)")
            // The column is that of the value.
            let column = "  a: {\(destination), http: {\(key): ".count + 1
            let address = destination.contains("endpoint") ? "endpoint" : "url"
            let words = "has no effect: `\(address)` begins with `http://`"
            #expect(
                found.first?.hasPrefix("a.yaml:4:\(column) destinations.a.http.\(key): \(words)") == true, "\(found)")
            #expect(found.first?.contains("write `https://` there") == true, "\(found)")
            #expect(found.first?.contains("`http.proxy_ca_file`") == keys.hasPrefix("ca_file: /ca.pem, proxy"))
        }
    }

    @Test("the certificate, its key and the password of that are each named")
    func identity() {
        let found = errors(
            "type: tus, url: \"http://nas.example/\", http: {client_certificate: /c.pem, client_key: {env: K}, "
                + "client_key_password: {env: P}}")
        #expect(found.count == 3 && found.allSatisfy { $0.contains("has no effect: `url`") }, "\(found)")
    }

    @Test("where some addresses have TLS its keys are right, and a warning names those that pinned keys do not protect")
    func mixed() throws {
        let keys = "http: {ca_file: /ca.pem, tls_min: TLSv1.3, client_certificate: /c.pem, pinned_keys: [\(Self.pin)]}"
        let key = "access_key: {env: A}, secret_key: {env: S}"
        let cases: [(destination: String, named: String?)] = [
            ("type: tus, url: \"https://nas.example/\"", nil), ("type: vimeo, token: {env: T}", nil),
            ("type: s3, bucket: clips, region: eu-central-1, \(key)", nil),
            ("type: tus, url: \"http://nas.example/\", allow_origins: [\"https://up.example\"]", "`url`"),
            (
                "type: tus, url: \"https://nas.example/\", allow_origins: [\"http://up.example\"]",
                "`http://up.example`"
            ), ("type: apsara-vod, region: cn-shanghai, \(key), endpoint: \"http://nas.example\"", "`endpoint`"),
        ]
        for (destination, named) in cases {
            let warnings = try load("\(destination), \(keys)").warnings.filter { $0.key.contains(".http.") }
            #expect(warnings.map(\.key) == (named == nil ? [] : ["destinations.a.http.pinned_keys"]), "\(warnings)")
            if let named { #expect(warnings.first?.text.hasPrefix("says nothing about \(named)") == true) }
        }
    }

    @Test("certificates for a service without TLS are a mistake as well", arguments: ["presign", "sts"])
    func services(_ section: String) {
        let found = errors(
            "type: \(section == "sts" ? "oss" : "s3"), bucket: clips, endpoint: \"https://nas.example\", "
                + "region: cn-shanghai, \(section): {url: \"http://sign.example/\", ca_file: /ca.pem}")
        #expect(found.contains { $0.contains("destinations.a.\(section).ca_file: has no effect: `url`") }, "\(found)")
    }

    @Test(
        "a text that no request can carry is a mistake, at its place",
        arguments: [
            ("headers: {X-A: ", "\"\"", "headers.X-A: is empty"),
            ("headers: {X-A: {literal: ", "\"a\\nb\"}", "headers.X-A: has a line break or another control character"),
            ("auth: bearer, token: {literal: ", "\"a\\0b\"", "token"),
            ("auth: bearer, token: {literal: ", "\"a\\nb\"", "token: has a line break"),
            ("auth: basic, user: me, password: {literal: ", "\"a\\u0007b\"", "password: has a line break"),
            (
                "proxy: \"http://p:1\", proxy_user: me, proxy_password: {literal: ", "\"a\\tb\"",
                "proxy_password: has a line break or another control character"
            ), ("proxy: \"http://p:1\", proxy_user: ", "\"a\\tb\"", "proxy_user: has a line break"),
        ])
    func texts(_ start: String, _ value: String, _ words: String) {
        let open = start.count { $0 == "{" } - value.count { $0 == "}" }
        let text = "type: tus, url: \"https://nas.example/\", http: {\(start)\(value)"
        let found = errors(text + String(repeating: "}", count: open + 1))
        // A NUL is no YAML at all.
        let isSyntax = value.contains("\\0")
        #expect(found.count == 1 && found[0].hasPrefix("a.yaml:4:"), "\(found)")
        #expect(isSyntax || found.first?.contains("destinations.a.http.\(words)") == true, "\(found)")
        // A user name is no secret.
        #expect(value == "\"\"" || words.hasPrefix("proxy_user") || found.first?.contains(value) == false, "\(found)")
    }

    @Test("one line end of a literal is not sent, so that it is no mistake")
    func lineEnd() throws {
        let loaded = try load(
            "type: tus, url: \"https://nas.example/\", http: {auth: bearer, token: {literal: \"token-of-nas\\n\"}}")
        #expect(loaded.settings.destinations.first?.values["http.token"] == .secret(.literal("token-of-nas\n")))
    }

    @Test(
        "a secret beside its key is in no message",
        arguments: [
            "auth: bearer hunter2", "auth: {bearer: hunter2}", "auth: basic, user: \"me:hunter2\", password: {env: P}",
            "proxy: \"http://p:1\", proxy_user: \"me:hunter2\"", "proxy: \"http://me:hunter2@p:1\"",
            "proxy: \"http://me:hun ter2@p:1\"", "headers: {Authorization Bearer hunter2}", "token {hunter2}",
            "proxy_password: {literal:hunter2}", "client_key: {literal: A,hunter2}",
            "headers: {X: \"{hunter2}\", X2: \"\"}",
        ])
    func hidden(_ keys: String) {
        let found = errors("type: tus, url: \"https://nas.example/\", http: {\(keys)}")
        #expect(!found.isEmpty)
        #expect(found.allSatisfy { !$0.contains("hunter2") && !$0.contains("ter2") }, "\(found)")
    }
}
