import Core
import Linux
import TestKit
import Testing

@testable import Destinations

@Suite("Mistakes in the section `http`")
struct HTTPObjectionsTests {
    private func objections(_ values: [String: SettingValue], of kind: DestinationDefinition = Tus.kind) -> [String] {
        var all: [String: SettingValue] = ["url": .text("https://nas.example/")]
        for (key, value) in values { all[key] = value }
        return kind.type.objections(all).map { "\($0.key) \($0.problem)" }
    }

    private static let secret = SettingValue.secret(.literal("secret"))

    @Test(
        "each mistake is named with its key and its remedy",
        arguments: [
            (["http.proxy": .text("ftp://proxy:1")], "http.proxy takes `environment`"),
            (["http.proxy": .text("proxy:3128")], "http.proxy takes `environment`"),
            (["http.proxy": .text("http://me:secret@proxy:3128")], "`proxy_user` and `proxy_password` are for that"),
            (["http.proxy": .text("me:secret@proxy:3128")], "`proxy_user` and `proxy_password` are for that"),
            (["http.proxy": .text("http://proxy#secret")], "http.proxy is an address without a path"),
            (["http.proxy": .text("http://proxy:3128/path")], "http.proxy is an address without a path"),
            (["http.proxy": .text("http://proxy")], "http.proxy needs a port, like `http://proxy:3128`"),
            (["http.proxy_user": .text("me")], "http.proxy_user has no effect without an address in `http.proxy`"),
            (
                ["http.proxy": .text("http://p:1"), "http.proxy_password": secret],
                "http.proxy_password needs `http.proxy_user`"
            ),
            (
                ["http.proxy": .text("http://p:1"), "http.proxy_ca_file": .path("/ca.pem")],
                "http.proxy_ca_file is for a proxy with `https://`"
            ),
            (["http.proxy": .text("none"), "http.no_proxy": .texts(["a"])], "http.no_proxy has no effect"),
            (["http.no_proxy": .texts(["a,b"])], "http.no_proxy[0] matches no host: it takes a domain"),
            (
                ["http.proxy": .text("socks5://p:1"), "http.proxy_user": .text(String(repeating: "u", count: 256))],
                "http.proxy_user has more than 255 bytes"
            ),
            (
                ["http.proxy": .text("http://p:1"), "http.proxy_user": .text("a:b")],
                "http.proxy_user has a colon, which no user of an HTTP proxy may have"
            ),
            (
                ["http.resolve": .texts(["nas.example:443:192.0.2.7", "NAS.example:443:192.0.2.8"])],
                "http.resolve[1] is a second entry for nas.example:443"
            ),
            (
                ["url": .text("https://192.0.2.7/"), "http.address_family": .text("ipv6")],
                "http.address_family excludes the address 192.0.2.7 in `url`"
            ),
            (
                ["url": .text("https://[2001:db8::7]/"), "http.address_family": .text("ipv4")],
                "http.address_family excludes the address 2001:db8::7 in `url`"
            ),
            (
                ["http.proxy": .text("http://192.0.2.7:1"), "http.address_family": .text("ipv6")],
                "http.address_family excludes the address 192.0.2.7 in `http.proxy`"
            ),
            (["http.client_key": secret], "http.client_key has no effect without `http.client_certificate`"),
            (["http.pinned_keys": .texts(["sha256//abc"])], "http.pinned_keys[0] takes `sha256//`"),
            (["http.pinned_keys": .texts([])], "http.pinned_keys names no key"),
            (["http.resolve": .texts(["nas.example:192.0.2.7"])], "http.resolve[0] takes `HOST:PORT:ADDRESS`"),
            (
                ["http.resolve": .texts(["nas.example:443:192.0.2.7"]), "http.address_family": .text("ipv6")],
                "http.resolve[0] names no address of `http.address_family: ipv6`"
            ),
            (["http.user_agent": .text("a\nb")], "http.user_agent takes printable ASCII"),
            (["http.headers": .map(["Upload-Offset": .literal("1")])], "http.headers.Upload-Offset cannot be set"),
            (["http.headers": .map(["Host": .literal("a")])], "http.headers.Host cannot be set"),
            (
                ["http.headers": .map(["user-agent": .literal("a")])],
                "http.headers.user-agent is what `http.user_agent`"
            ),
            (
                ["http.headers": .map(["X-A": .literal("a"), "x-a": .literal("b")])], "http.headers.x-a is given twice"
            ),
            (["http.auth": .text("basic"), "http.user": .text("me")], "http.auth needs `http.password`"),
            (["http.auth": .text("bearer")], "http.auth needs `http.token`"),
            (["http.password": secret], "http.password has no effect without `http.auth`"),
            (
                ["http.auth": .text("bearer"), "http.token": secret, "http.user": .text("me")],
                "http.user is not used by `auth: bearer`"
            ),
            (
                ["http.auth": .text("basic"), "http.user": .text("a:b"), "http.password": secret],
                "http.user has a colon"
            ),
            (
                ["token": secret, "http.auth": .text("bearer"), "http.token": secret],
                "http.auth cannot be used here: `token` authorises the requests"
            ),
            (
                ["token": secret, "http.headers": .map(["Authorization": .literal("a")])],
                "http.headers.Authorization is what `token` sets"
            ),
        ] as [([String: SettingValue], String)])
    func mistakes(_ values: [String: SettingValue], _ expected: String) {
        let found = objections(values)
        #expect(found.count == 1 && found.first?.contains(expected) == true, "\(found)")
    }

    @Test(
        "an exemption from the proxy that can match no host is a mistake",
        arguments: [
            ("*.example.org", false), ("example.org:443", false), ("http://example.org", false),
            ("10.0.0.0/99", false), ("::1/200", false), ("10.0.0.300/8", false), ("10.0.0.300", false), ("", false),
            ("example.org/files", false), ("[::1]:443", false), (".", false), ("example.org", true),
            (".example.org", true), ("nas", true), ("10.0.0.0/8", true), ("10.0.0.3", true), ("::1", true),
            ("[::1]", true), ("fd00::/8", true), ("*", true), ("my_nas.lan", true), ("3com.example", true),
        ])
    func exemptions(_ entry: String, _ isRight: Bool) {
        #expect(objections(["http.no_proxy": .texts([entry])]).isEmpty == isRight)
    }

    @Test("requests of buckets are signed: neither `auth` nor headers of the signature can be set")
    func buckets() {
        let values: [String: SettingValue] = [
            "bucket": .text("bucket"), "region": .text("cn-shanghai"), "access_key": Self.secret,
            "secret_key": Self.secret,
            "http.auth": .text("bearer"), "http.token": Self.secret,
            "http.headers": .map(["x-amz-acl": .literal("a"), "X-Oss-Meta": .literal("a"), "X-Site": .literal("a")]),
        ]
        for kind in [S3.kind, OSS.kind] {
            let found = objections(values, of: kind)
            #expect(found.count { $0.hasPrefix("http.") } == 3, "\(found)")
            #expect(found.contains { $0.contains("`access_key` authorises the requests") }, "\(found)")
        }
    }

    @Test("the manual page lists exactly the keys of the section")
    func manual() throws {
        let text = String(decoding: try Files.read(Repository.root.appending("docs/http.md")), as: UTF8.self)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `http.") }
        #expect(
            rows.map { String($0.dropFirst(3).prefix { $0 != "`" }) } == HTTPSettings.section.setting.flat.map(\.name))
    }
}
