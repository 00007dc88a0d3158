import Core
import Testing
import Transport

@testable import Destinations

@Suite("Addresses")
struct AddressTests {
    /// RFC 3986, section 5.4, without the fragments, which are never sent.
    static let rfc: [(String, String)] = [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
        ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"), ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("http://x/y", "http://x/y"),
    ]

    @Test("addresses resolve as RFC 3986 says", arguments: rfc)
    func resolves(_ reference: String, _ target: String) {
        #expect(WebAddress("http://a/b/c/d;p?q").resolving(reference).description == target)
    }

    @Test(
        "an upload's address stays exactly as the server wrote it",
        arguments: [
            ("abc", "https://h:8/abc"), ("/files/a+b~c%2F?sig=x%3D&y", "https://h:8/files/a+b~c%2F?sig=x%3D&y"),
            ("https://h:8/a//b/./c/", "https://h:8/a//b/./c/"), ("?id=7", "https://h:8/files?id=7"),
            // The host as configured.
            ("//h:8/x", "https://h:8/x"), ("HTTPS://H:08/X", "https://h:8/X"), ("https://h.:8/x", "https://h:8/x"),
        ])
    func exact(_ location: String, _ url: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8/files"])
        let resolved = try UploadLocation(location, base: "https://h:8/files", allowed: allowed)
        #expect(resolved == UploadLocation(url: url, isAllowed: true))
    }

    @Test(
        "an address at another origin is recognised, and stays unchanged",
        arguments: [
            ("//other/x", "https://other/x"), ("https://store.test/x?s=a%2F", "https://store.test/x?s=a%2F"),
            ("https://h/x", "https://h/x"), ("https://h:9/x", "https://h:9/x"), ("http://h:8080/x", "http://h:8080/x"),
            ("http://other/x", "http://other/x"), ("https://h.evil.test:8/x", "https://h.evil.test:8/x"),
            ("https://evilh:8/x", "https://evilh:8/x"), ("//h/x", "https://h/x"),
        ])
    func elsewhere(_ location: String, _ url: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8/files"])
        let resolved = try UploadLocation(location, base: "https://h:8/files", allowed: allowed)
        #expect(resolved == UploadLocation(url: url))
    }

    @Test(
        "http for an https server is corrected for the same host",
        arguments: ["http://h/x", "http://h:80/x", "http://H/x"])
    func mended(_ location: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8443/files"])
        let resolved = try UploadLocation(location, base: "https://h:8443/files", allowed: allowed)
        #expect(resolved == UploadLocation(url: "https://h:8443/x", isSchemeUpgraded: true, isAllowed: true))
    }

    @Test(
        "invalid addresses are refused",
        arguments: [
            "ftp://h/x", "https://h%2e/x", "https://h\\.evil.test/x", "https://h:0/x", "https://h:99999/x",
            "https://[::1/x",
            "https://\u{212A}/x", "file:///etc/passwd", "https://me:pw@h/x", "https:///x",
            "/a b", "/a\r\nX: y", "javascript:alert(1)", "https://me@\u{301}h/x", "//me@\u{301}@\u{301}h/x",
            "/" + String(repeating: "a", count: 9000),
        ])
    func refused(_ location: String) {
        #expect(throws: UploadLocation.RefusedError.self) {
            try UploadLocation(location, base: "https://h/files", allowed: AllowedOrigins(homes: ["https://h/files"]))
        }
    }

    @Test(
        "an origin is scheme, host and port",
        arguments: [
            ("https://H/x", "https://h:443"), ("http://h", "http://h:80"), ("http://[::1]:81/", "http://[::1]:81"),
            ("http://h:/x", "http://h:80"), ("http://u:p@h:9/x", "http://h:9"),
            // A combining accent does not hide the delimiter before it.
            ("http://h/\u{301}x:9", "http://h:80"), ("http://h?\u{301}:9", "http://h:80"),
            ("http://h#\u{301}@x", "http://h:80"), ("http://u@\u{301}h", "http://\u{301}h:80"),
            ("http://[::1]x:81", "http://[::1]x:81"),
            // Other spellings of the same.
            ("https://H.:0443/", "https://h:443"), ("http://[0:0::1]:081/", "http://[::1]:81"),
            ("http://./", "http://.:80"),
        ])
    func origins(_ url: String, _ origin: String) { #expect(WebAddress(url).origin == origin) }
}
