import Testing

@testable import Transport

@Suite("First hop of a request")
struct ProxyTests {
    private func stop(_ scheme: String, _ host: String, _ variables: [String: String]) -> String {
        let stop = Proxies.firstStop(scheme: scheme, host: host, port: 443) { variables[$0] }
        return "\(stop.host):\(stop.port)"
    }

    @Test(
        "the first hop is the scheme's proxy from the environment, or else the server",
        arguments: [
            ("https", ["https_proxy": "http://proxy.lan:3128/"], "proxy.lan:3128"),
            ("https", ["HTTPS_PROXY": "Proxy.LAN:8080"], "proxy.lan:8080"),
            ("https", ["http_proxy": "proxy.lan:3128"], "nas.example:443"),
            ("http", ["http_proxy": "proxy.lan"], "proxy.lan:1080"),
            // A request's own header would set it in a web server's programs.
            ("http", ["HTTP_PROXY": "proxy.lan:3128"], "nas.example:443"),
            ("http", ["ALL_PROXY": "socks5://user:secret@10.0.0.1:9050"], "10.0.0.1:9050"),
            ("https", ["https_proxy": "https://proxy.lan"], "proxy.lan:443"),
            ("https", ["https_proxy": "http://[fd00::1]:3128"], "fd00::1:3128"),
            ("https", ["https_proxy": ""], "nas.example:443"), ("https", [:], "nas.example:443"),
        ])
    func chosen(_ scheme: String, _ variables: [String: String], _ expected: String) {
        #expect(stop(scheme, "nas.example", variables) == expected)
    }

    @Test(
        "the first hop is the server if the environment exempts it, by name, parent domain, network, or all",
        arguments: [
            ("nas.example", "nas.example", true), ("nas.example", "example", true), ("nas.example", ".example", true),
            ("nas.example", "other,example", true), ("nas.example", "*", true), ("nas.example", "as.example", false),
            ("nas.example", "", false), ("10.1.2.3", "10.0.0.0/8", true), ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "11.0.0.0/8", false), ("10.1.2.3", "3", false),
        ])
    func exempt(_ host: String, _ list: String, _ isDirect: Bool) {
        let answer = stop("https", host, ["https_proxy": "proxy.lan:3128", "no_proxy": list])
        #expect(answer == (isDirect ? "\(host):443" : "proxy.lan:3128"))
    }

    @Test(
        "the first hop is this machine for local addresses, whatever the environment says",
        arguments: ["localhost", "127.0.0.1", "::1", "bucket.s3.localhost"])
    func loopback(_ host: String) {
        #expect(stop("https", host, ["https_proxy": "proxy.lan:3128", "all_proxy": "a:1"]) == "\(host):443")
    }

    @Test("a 401 without `Via` may be the proxy's own, except over CONNECT")
    func unauthorized() {
        let asks = ("WWW-Authenticate", "Basic realm=\"Tinyproxy\"")
        #expect(Proxies.mayHaveAnswered(401, Headers([asks]), scheme: "http"))
        #expect(!Proxies.mayHaveAnswered(401, Headers([asks]), scheme: "https"))
        #expect(!Proxies.mayHaveAnswered(401, Headers([asks, ("via", "1.1 tinyproxy")]), scheme: "http"))
        #expect(!Proxies.mayHaveAnswered(403, Headers([asks]), scheme: "http"))
    }
}
