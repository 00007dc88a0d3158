import Core
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("User and password of a proxy")
struct ProxyLoginTests {
    private func found(_ variable: String, _ value: String) -> Proxies.OfEnvironment {
        Proxies.ofEnvironment(scheme: "https", host: "nas.example") { $0 == variable ? value : nil }
    }

    @Test(
        "a proxy variable with a user or password that libcurl cannot read is unusable, and nothing goes past it",
        arguments: [
            // Characters that end or divide an address.
            "u:ENVSECRET@PW@", "u:ENVSECRET#PW@", "u:1#PW@", "u:ENVSECRET?PW@", "u:1?PW@", "u:ENVSECRET/PW@", "u/PW@",
            "u:a b@", "u:a\nb@", "u:a\tb@", "u:a\u{7F}b@",
            // libcurl would leave the proxy out without an error.
            "u:p%00w@", "u:p%01w@", "u:p%09w@", "u:p%0aw@", "u:p%0Dw@", "u:p%7fw@", "%0au:pw@", "u%09:pw@", "u:%%0a@",
        ], ["http", "https", "socks5", "socks4"])
    func unusable(_ login: String, _ scheme: String) {
        for variable in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            guard case .unusable(let name) = found(variable, "\(scheme)://\(login)127.0.0.1:9") else {
                Issue.record("\(login) in \(variable) is used")
                continue
            }
            #expect(name == variable)
        }
    }

    @Test(
        "other users and passwords are used as they are",
        arguments: ["", "u@", "u:@", "@", "u:p%40%23%3F%2F%20w@", "u:100%@", "u:%zz@", "u:p:w@", "u:é@", "u:%C3%A9@"])
    func usable(_ login: String) {
        guard case .server(let proxy) = found("https_proxy", "http://\(login)proxy.lan:3128") else {
            Issue.record("\(login) is refused")
            return
        }
        #expect(proxy.url == "http://\(login)proxy.lan:3128")
    }

    @Test(
        "no part of an address that libcurl quotes is shown",
        arguments: [
            "Unsupported proxy syntax in 'http://u:ENVSECRET@PW@127.0.0.1:9'",
            "Unsupported proxy scheme for 'ftp://u:ENVSECRET@127.0.0.1:9'",
            // It cuts what is longer than its buffer.
            "Unsupported proxy syntax in 'http://u:ENVSECRETENVSECRET",
            "Unsupported proxy 'https://u:ENVSECRET@h', libcurl is built without the HTTPS-proxy support.",
            "Something about 'u:ENVSECRET's@h'",
        ])
    func quoted(_ words: String) {
        let shown = Proxies.withoutAddress(words)
        #expect(!shown.contains("ENVSECRET") && !shown.contains("u:"), "\(shown)")
        #expect(shown.hasPrefix(String(words.prefix { $0 != "'" })), "\(shown)")
    }

    @Test(
        "words of libcurl without such an address stay",
        arguments: [
            "SSL: no alternative certificate subject name matches target host name 'nas.example'",
            "Could not resolve host: nas.example", "Couldn't connect to server", "",
        ])
    func unchanged(_ words: String) { #expect(Proxies.withoutAddress(words) == words) }

    @Test("a configured user and password reach the proxy unchanged, whatever characters they have")
    func sent() async throws {
        let seen = Mutex<[String?]>([])
        let server = try FakeServer { exchange in
            seen.withLock { $0.append(exchange.header("proxy-authorization")) }
            exchange.reply(200)
        }
        let proxy = try #require(ProxyServer("http://127.0.0.1:\(server.port)", origin: .configuration))
        let transport = Transport()
        let passwords = ["plain", "100%25", "%41%zz", "a@b:c/d?e#f g", "pässword", "'\"\\"]
        for password in passwords {
            var request = Request("GET", "http://nas.example/")
            request.connection.proxy = .server(proxy, exempt: [])
            (request.connection.proxyUser, request.connection.proxyPassword) = ("me%41", password)
            #expect(try await transport.send(request).status == 200)
        }
        #expect(seen.withLock { $0 } == passwords.map { "Basic " + base64(Array("me%41:\($0)".utf8)) })
        await transport.stop()
    }

    @Test(
        "a configured password with a control character is an error, and no server is reached",
        arguments: ["\0", "\n", "\t"])
    func controls(_ character: String) async throws {
        let server = try FakeServer { $0.reply(200) }
        let proxy = try #require(ProxyServer("http://127.0.0.1:1", origin: .configuration))
        let transport = Transport()
        var request = Request("GET", server.url)
        request.connection.proxy = .server(proxy, exempt: [])
        (request.connection.proxyUser, request.connection.proxyPassword) = ("me", "ENV\(character)SECRET")
        do throws(TransportError) {
            _ = try await transport.send(request)
            Issue.record("the request was sent")
        } catch {
            #expect(error.kind == .other && error.detail.contains("`http.proxy_password`"), "\(error)")
            #expect(!error.detail.contains("SECRET"), "\(error)")
        }
        #expect(server.connectionCount == 0)
        await transport.stop()
    }
}

@Suite("Names of hosts with a dot at their end")
struct HostNameTests {
    @Test("an exemption from the proxy matches with and without the dot, in any case")
    func exempt() {
        for host in ["nas.example", "nas.example.", "NAS.Example."] {
            for entry in ["nas.example", "NAS.EXAMPLE.", "example.", ".Example.", "*"] {
                #expect(Proxies.isExempt(host, [entry]), "\(host) \(entry)")
            }
            #expect(!Proxies.isExempt(host, ["as.example.", "other.", "."]), "\(host)")
        }
    }

    @Test(
        "an address that a person gives for a name is used with and without the dot, in any case",
        arguments: ["nas.invalid", "nas.invalid.", "NAS.Invalid."])
    func resolve(_ name: String) async throws {
        let server = try FakeServer { $0.reply(200) }
        let transport = Transport()
        for host in ["nas.invalid", "nas.invalid.", "Nas.INVALID."] {
            let fixed = try #require(FixedAddress("\(name):\(server.port):127.0.0.1"))
            var request = Request("GET", "http://\(host):\(server.port)/")
            request.connection.proxy = .none
            request.connection.fixedAddresses = [fixed]
            let site = request.connection.site(of: WebAddress(request.url))
            #expect(site == .server(host: "127.0.0.1", port: UInt16(server.port)), "\(host)")
            #expect(try await transport.send(request).status == 200, "\(host)")
        }
        await transport.stop()
    }
}
