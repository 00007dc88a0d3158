import Core
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Allowed addresses from a server")
struct AllowedOriginsTests {
    @Test(
        "addresses of the configured origin are allowed, in any spelling; from http to https, and never back",
        arguments: [
            ("http://nas.test/files", "http://nas.test/u", "http://nas.test/u"),
            ("http://nas.test/files", "HTTP://NAS.test.:80/u", "http://nas.test/u"),
            ("http://nas.test/files", "http://nas.test:81/u", nil), ("http://nas.test/files", "http://test/u", nil),
            ("http://nas.test/files", "http://a.nas.test/u", nil), ("http://nas.test/files", "ftp://nas.test/u", nil),
            ("http://[fe80:0::1]:81/files", "http://[FE80::0:1]:81/u", "http://[fe80:0::1]:81/u"),
            ("http://[::1]:81/files", "http://127.0.0.1:81/u", nil),
            ("http://127.0.0.1/files", "http://2130706433/u", nil),
            ("http://u.test/files", "http://me:pw@u.test/u", nil),
            // Encrypted: each at its own port, or both at the same.
            ("http://nas.test/files", "https://nas.test/u", "https://nas.test/u"),
            ("http://nas.test:80/files", "https://nas.test:443/u?q", "https://nas.test/u?q"),
            ("http://nas.test:8080/files", "https://nas.test:8080/u", "https://nas.test:8080/u"),
            ("http://nas.test:8080/files", "https://nas.test/u", nil),
            ("http://nas.test/files", "https://nas.test:8443/u", nil),
            ("http://nas.test/files", "https://other.test/u", nil),
            // Not encrypted any more.
            ("https://nas.test/files", "http://nas.test:8080/u", nil),
            ("https://nas.test:8443/files", "http://nas.test:8443/u", nil),
            ("https://nas.test/files", "http://other.test/u", nil),
        ] as [(String, String, String?)])
    func home(_ home: String, _ target: String, _ place: String?) {
        #expect(AllowedOrigins(homes: [home]).place(of: target)?.url == place)
    }

    @Test(
        "configured origins are allowed, as they are written",
        arguments: [
            ("https://up.test/u?a=%2F", "https://up.test/u?a=%2F"), ("https://UP.test:443/u", "https://up.test/u"),
            ("https://up.test:8443/u", "https://up.test:8443/u"), ("http://up.test/u", nil),
            ("https://up.test:8444/u", nil), ("https://a.up.test/u", nil), ("https://evilup.test/u", nil),
            ("https://up.test.evil/u", nil), ("http://plain.test/u", "http://plain.test/u"),
            ("https://plain.test/u", nil),
        ] as [(String, String?)])
    func named(_ target: String, _ place: String?) {
        let allowed = AllowedOrigins(
            homes: ["https://nas.test"], named: ["https://up.test", "https://up.test:8443", "http://plain.test"])
        #expect(allowed.place(of: target)?.url == place)
    }

    @Test("http of an https server becomes its https, unless the http origin is configured")
    func downgrade() {
        let target = "http://nas.test/u"
        #expect(
            AllowedOrigins(homes: ["https://nas.test:8443/files"]).place(of: target)
                == AllowedOrigins.Place(url: "https://nas.test:8443/u", isSchemeUpgraded: true))
        #expect(
            AllowedOrigins(homes: ["https://nas.test/files"], named: ["http://nas.test"]).place(of: target)
                == AllowedOrigins.Place(url: target))
    }

    @Test(
        "hosts of the service's documented domains are allowed, by https at its own port",
        arguments: [
            (Vimeo.domains, "https://files.tus.vimeo.com/files/a?b", "https://files.tus.vimeo.com/files/a?b"),
            (Vimeo.domains, "https://asia-files.tus.vimeo.com/f", "https://asia-files.tus.vimeo.com/f"),
            (Vimeo.domains, "https://1234.cloud.vimeo.com:443/upload", "https://1234.cloud.vimeo.com/upload"),
            (Vimeo.domains, "http://1234.cloud.vimeo.com/upload", "https://1234.cloud.vimeo.com/upload"),
            (Vimeo.domains, "https://1234.cloud.vimeo.com:8443/upload", nil),
            (Vimeo.domains, "https://evilvimeo.com/x", nil), (Vimeo.domains, "https://vimeo.com.evil.test/x", nil),
            (Vimeo.domains, "https://files.tus.vimeo.com@evil.test/x", nil),
            (Vimeo.domains, "https://evil.test/files.tus.vimeo.com", nil),
            (Vimeo.domains, "https://evil.test\\.vimeo.com/", nil), (Vimeo.domains, "https://.vimeo.com/", nil),
            (Apsara.domains, "https://oss-cn-shanghai.aliyuncs.com", "https://oss-cn-shanghai.aliyuncs.com"),
            (
                Apsara.domains, "https://OSS-cn-shanghai-internal.aliyuncs.com.",
                "https://oss-cn-shanghai-internal.aliyuncs.com"
            ),
            (Apsara.domains, "http://oss-cn-shanghai.aliyuncs.com", "https://oss-cn-shanghai.aliyuncs.com"),
            (Apsara.domains, "https://evilaliyuncs.com", nil), (Apsara.domains, "https://aliyuncs.com.evil.test", nil),
        ] as [([String], String, String?)])
    func domains(_ domains: [String], _ target: String, _ place: String?) {
        let allowed = AllowedOrigins(homes: ["https://api.test"], domains: domains)
        #expect(allowed.place(of: target)?.url == place)
    }

    @Test(
        "the suggested line includes existing origins, and nothing of the address after its port",
        arguments: [
            ("https://Up.test:443/files/secret?signature=x", "`allow_origins: [https://a.test, https://up.test]`"),
            ("https://up.test:8443/", "`allow_origins: [https://a.test, https://up.test:8443]`"),
            ("https://[0::1]:8443/", "`allow_origins: [https://a.test, \"https://[::1]:8443\"]`"),
            ("http://up.test/secret", "[https://a.test, http://up.test]`. That connection is not encrypted"),
        ])
    func line(_ target: String, _ line: String) {
        let words = AllowedOrigins(homes: ["https://nas.test/files"], named: ["https://a.test"]).objection(to: target)
        #expect(words.contains(line), "\(words)")
        #expect(words.contains("another origin than https://nas.test, https://a.test"), "\(words)")
        #expect(!words.contains("secret") && !words.contains("signature"), "\(words)")
    }

    @Test("credentials are sent to the configured origin, named ones, and the first one with encryption")
    func credentials() {
        #expect(
            AllowedOrigins(homes: ["http://nas.test:81/x"], named: ["https://up.test"]).origins
                == ["http://nas.test:81", "https://nas.test:81", "https://up.test:443"])
        #expect(AllowedOrigins(homes: ["https://nas.test/x"]).origins == ["https://nas.test:443"])
    }
}
