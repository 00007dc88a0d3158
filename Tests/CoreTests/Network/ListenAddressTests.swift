import TestKit
import Testing

@testable import Core

@Suite("Addresses to listen on")
struct ListenAddressTests {
    @Test(
        "an address has a host and a port, and says whether other machines can reach it",
        arguments: [
            ("127.0.0.1:8484", "127.0.0.1", 8484, true), (":8484", "0.0.0.0", 8484, false),
            ("[::1]:0", "::1", 0, true), ("localhost:80", "localhost", 80, true),
            ("nas.lan:65535", "nas.lan", 65_535, false),
            ("[fd00::1]:1", "fd00::1", 1, false),
        ])
    func good(_ text: String, _ host: String, _ port: Int, _ isLoopback: Bool) throws {
        let address = try ListenAddress(text)
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.isLoopback == isLoopback)
        #expect(try ListenAddress("\(address)") == address)
    }

    @Test(
        "other forms are refused",
        arguments: ["", "8484", "a:", "a:b", "a:65536", "a:-1", "a:+1", "[::1]", "[x]:1", "[]:1", "a:1 "])
    func bad(_ text: String) {
        #expect(throws: ListenAddress.ParseError(text: nil)) { try ListenAddress(text) }
    }

    @Test("IPv6 addresses need brackets, and the error says so")
    func bare() {
        #expect(throws: ListenAddress.ParseError(text: "takes an IPv6 address in brackets: [fd00::1]:80")) {
            try ListenAddress("fd00::1:80")
        }
    }
}
