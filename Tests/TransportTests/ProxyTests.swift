import Core
import Linux
import TestKit
import Testing

@testable import Transport

@Suite("First hop of a request")
struct ProxyTests {
    private func stop(_ scheme: String, _ host: String, _ variables: [String: String]) -> String {
        switch Proxies.ofEnvironment(scheme: scheme, host: host, environment: { variables[$0] }) {
        case .none: "\(host):443"
        case .server(let proxy): "\(proxy.host):\(proxy.port)"
        case .unusable(let variable): "unusable \(variable)"
        }
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
            // As users of curl write it.
            ("nas.example", "*.example", true), ("nas.example", "nas.example:443", false),
        ])
    func exempt(_ host: String, _ list: String, _ isDirect: Bool) {
        let answer = stop("https", host, ["https_proxy": "proxy.lan:3128", "no_proxy": list])
        #expect(answer == (isDirect ? "\(host):443" : "proxy.lan:3128"))
    }

    @Test(
        "a variable that is no address of a proxy is named, and no server is reached past it",
        arguments: [
            ("https_proxy", "ftp://127.0.0.1:29411"), ("https_proxy", "http://bob:secret@bücher:3128"),
            ("HTTPS_PROXY", "http://127.0.0.1:99999"), ("all_proxy", "http://proxy.lan:0"), ("ALL_PROXY", "http://"),
        ])
    func unusable(_ variable: String, _ value: String) {
        #expect(stop("https", "nas.example", [variable: value]) == "unusable \(variable)")
        #expect(stop("https", "nas.example", [variable: value, "no_proxy": ".example"]) == "nas.example:443")
        #expect(stop("https", "127.0.0.1", [variable: value]) == "127.0.0.1:443")
    }

    @Test("a failure of a proxy names it, its place in the settings, and the keys of its user")
    func failure() throws {
        let proxy = try #require(ProxyServer("socks5://proxy.lan:1080", origin: .configuration))
        let refused = Proxies.failure("User was rejected by the SOCKS5 server (1 1).", of: proxy)
        #expect(refused.contains("the proxy proxy.lan:1080, which `http.proxy` names"), "\(refused)")
        #expect(refused.contains("`http.proxy_user` and `http.proxy_password`"), "\(refused)")
        #expect(!Proxies.failure("Can't complete SOCKS5 connection. (4)", of: proxy).contains("proxy_user"))
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

    @Test(
        "a refusal with the mark of a program for proxies is the proxy's own, and one that it has forwarded is not",
        arguments: [
            (403, [("Server", "tinyproxy/1.11.1")], true), (500, [("server", "Tinyproxy/1.11.1")], true),
            (503, [("X-Squid-Error", "ERR_CONNECT_FAIL 111"), ("Via", "1.1 gate (squid/5.7)")], true),
            (403, [("Server", "squid/5.7")], true), (502, [("Proxy-Agent", "gate")], true),
            (504, [("Proxy-Connection", "close")], true),
            (403, [("Proxy-Connection", "keep-alive"), ("Via", "1.1 gate")], false),
            (403, [("Server", "nginx"), ("Via", "1.1 gate (tinyproxy/1.11.1)")], false), (403, [], false),
            (404, [("Server", "tinyproxy/1.11.1")], false), (200, [("Server", "squid/5.7")], false),
        ] as [(Int, [(String, String)], Bool)])
    func ownAnswers(_ status: Int, _ headers: [(String, String)], _ isOwn: Bool) {
        var response = Response(status: status, headers: Headers(headers))
        #expect(!response.isOfProxy)
        response.plainProxy = ProxyServer("proxy.lan:3128", origin: .configuration)
        #expect(response.isOfProxy == isOwn)
    }

    @Test(
        "the address of a proxy gives its scheme, host and port; SOCKS proxies look up names",
        arguments: [
            ("proxy.lan", "http://proxy.lan:1080"), ("http://Proxy.LAN:3128/", "http://proxy.lan:3128"),
            ("https://proxy.lan", "https://proxy.lan:443"), ("socks5://10.0.0.1:9050", "socks5h://10.0.0.1:9050"),
            ("socks4://10.0.0.1", "socks4a://10.0.0.1:1080"), ("http://[fd00::1]:3128", "http://[fd00::1]:3128"),
            ("http://me:p%40ss@proxy.lan:1", "http://me:p%40ss@proxy.lan:1"), ("ftp://proxy.lan", nil),
            ("http://", nil), ("http://a b:1", nil), ("http://proxy.lan:70000", nil),
        ] as [(String, String?)])
    func address(_ text: String, _ expected: String?) {
        #expect(ProxyServer(text, origin: .configuration)?.url == expected)
    }

    @Test("a configured proxy is used for every server but the exempt ones, also on this machine")
    func configured() throws {
        let server = try #require(ProxyServer("http://proxy.lan:3128", origin: .configuration))
        let choice = ProxyChoice.server(server, exempt: ["lan", "10.0.0.0/8"])
        for url in ["https://nas.example/", "http://127.0.0.1:8080/"] {
            #expect(choice.server(for: WebAddress(url)) == server)
        }
        for url in ["https://nas.lan/", "http://10.1.2.3/"] { #expect(choice.server(for: WebAddress(url)) == nil) }
        #expect(ProxyChoice.none.server(for: WebAddress("https://nas.example/")) == nil)
    }
}

@Suite("Words of a broken connection")
struct BrokenConnectionTests {
    @Test("a server that closes right after the handshake is explained in place of libcurl's words about a socket")
    func closed() {
        let words = TransportError.explained("getpeername() failed with errno 107: Transport endpoint is not connected")
        #expect(words.contains("right after the handshake") && words.contains("`http.client_certificate`"))
        #expect(TransportError.explained("Connection reset by peer") == "Connection reset by peer")
    }
}

@Suite("Way of requests")
struct ConnectionSettingsTests {
    private func site(_ url: String, _ change: (inout ConnectionSettings) -> Void) -> DestinationSite? {
        var settings = ConnectionSettings()
        settings.proxy = .none
        change(&settings)
        return settings.site(of: WebAddress(url))
    }

    @Test("policy judges the server, or the proxy before it, or the address that a person gives for it")
    func sites() throws {
        let proxy = try #require(ProxyServer("http://proxy.lan:3128", origin: .configuration))
        let here = try #require(ProxyServer("socks5://127.0.0.1:9050", origin: .configuration))
        let one = try #require(FixedAddress("NAS.example:443:192.0.2.7"))
        let two = try #require(FixedAddress("nas.example:443:192.0.2.7,[2001:db8::7]"))
        let url = "https://nas.example/files"
        #expect(site(url) { _ in } == .server(host: "nas.example", port: 443))
        #expect(site(url) { $0.proxy = .server(proxy, exempt: []) } == .server(host: "proxy.lan", port: 3128))
        #expect(
            site(url) { $0.proxy = .server(proxy, exempt: ["nas.example"]) } == .server(host: "nas.example", port: 443))
        // It connects from this machine.
        #expect(site(url) { $0.proxy = .server(here, exempt: []) } == .server(host: "nas.example", port: 443))
        #expect(site(url) { $0.fixedAddresses = [one] } == .server(host: "192.0.2.7", port: 443))
        #expect(
            site(url) {
                $0.fixedAddresses = [two]
                $0.addressFamily = .ipv6
            } == .server(host: "2001:db8::7", port: 443, family: .ipv6))
        #expect(site(url) { $0.fixedAddresses = [two] } == .addresses(two.addresses, port: 443))
        #expect(
            site("https://nas.example:8443/") { $0.fixedAddresses = [one] } == .server(host: "nas.example", port: 8443))
        #expect(site("nonsense") { _ in } == nil)
        // The address of a proxy may be given too.
        for (given, expected) in [
            ("192.0.2.50", DestinationSite.server(host: "192.0.2.50", port: 3128)),
            ("127.0.0.1", .server(host: "nas.example", port: 443)),
        ] {
            let fixed = try #require(FixedAddress("proxy.lan:3128:\(given)"))
            let found = site(url) {
                $0.proxy = .server(proxy, exempt: [])
                $0.fixedAddresses = [fixed]
            }
            #expect(found == expected, "\(given)")
        }
        // Such a proxy may use any version of IP to the server.
        let narrow = site(url) {
            $0.proxy = .server(here, exempt: [])
            $0.addressFamily = .ipv4
        }
        #expect(narrow == .server(host: "nas.example", port: 443))
    }

    @Test("a proxy at any address of this machine is on this machine")
    func own() throws {
        let own = try Links.all().flatMap(\.addresses).map { "\($0.address)" } + ["0.0.0.0", "::", "127.0.0.9"]
        for address in own {
            let host = address.contains(":") ? "[\(address)]" : address
            let proxy = try #require(ProxyServer("http://\(host):3128", origin: .configuration))
            #expect(proxy.isHere, "\(address)")
            var settings = ConnectionSettings()
            settings.proxy = .server(proxy, exempt: [])
            let site = settings.site(of: WebAddress("http://192.0.2.7:8080/"))
            #expect(site == .server(host: "192.0.2.7", port: 8080), "\(address)")
        }
        let other = try #require(ProxyServer("http://192.0.2.99:3128", origin: .configuration))
        #expect(!other.isHere)
    }

    @Test("no connection is made to a proxy at an address whose route was not judged", arguments: [true, false])
    func surprising(_ isHere: Bool) throws {
        // As if another file of names were valid for the lookup.
        let name = isHere ? "localhost" : "proxy.example"
        var request = Request("GET", "http://192.0.2.7:8080/")
        request.connection.proxy = .server(
            try #require(ProxyServer("http://\(name):3128", origin: .configuration)), exempt: [])
        let transfer = CurlTransfer(request)
        let (own, other) = (try #require(IPAddress("127.0.0.1")), try #require(IPAddress("192.0.2.99")))
        #expect(transfer.way.usesLocalProxy == isHere)
        #expect(transfer.mayConnect(to: isHere ? own : other, port: 3128))
        #expect(!transfer.mayConnect(to: isHere ? other : own, port: 3128))
        #expect(transfer.objection?.kind == .interface)
        #expect(transfer.objection?.detail.contains("the proxy \(name):3128 is on this machine") == true)
        #expect(transfer.objection?.detail.contains("`http.proxy`") == true)
    }

    @Test(
        "addresses for a name are read as curl reads them",
        arguments: [
            ("nas.example:443:192.0.2.7", true), ("nas.example:443:192.0.2.7,192.0.2.8", true),
            ("nas.example:443:2001:db8::1", true), ("nas.example:443:[2001:db8::1]", true),
            ("nas.example:443", false), ("nas.example:0:192.0.2.7", false), ("nas.example:443:other.example", false),
            (":443:192.0.2.7", false), ("nas.example:443:", false), ("a/b:443:192.0.2.7", false),
        ])
    func fixed(_ text: String, _ isValid: Bool) { #expect((FixedAddress(text) != nil) == isValid) }

    @Test("requests with other settings use neither the kept connections nor the known names of others")
    func pools() async throws {
        let server = try FakeServer { $0.reply(200) }
        let transport = Transport()
        func request(_ change: (inout ConnectionSettings) -> Void) async throws -> Int {
            var request = Request("GET", "http://nas.invalid:\(server.port)/")
            change(&request.connection)
            return try await transport.send(request).status
        }
        let address = try #require(FixedAddress("nas.invalid:\(server.port):127.0.0.1"))
        #expect(try await request { $0.fixedAddresses = [address] } == 200)
        #expect(try await request { $0.fixedAddresses = [address] } == 200)
        #expect(server.connectionCount == 1)
        #expect(
            try await request {
                $0.fixedAddresses = [address]
                $0.userAgent = "other"
            } == 200)
        #expect(server.connectionCount == 2)
        // The name has an address only where a person gave it one.
        await #expect { _ = try await request { $0.proxy = .none } } throws: { error in
            (error as? TransportError)?.kind == .resolve
        }
        await transport.stop()
    }
}
