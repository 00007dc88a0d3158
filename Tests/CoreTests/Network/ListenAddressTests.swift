import TestKit
import Testing

@testable import Core

@Suite("Addresses to listen on")
struct ListenAddressTests {
    @Test(
        "have a host and a port, and say whether others reach them",
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
        "are refused in any other form",
        arguments: ["", "8484", "a:", "a:b", "a:65536", "a:-1", "a:+1", "[::1]", "[x]:1", "[]:1", "a:1 "])
    func bad(_ text: String) {
        #expect(throws: ListenAddress.Mistake(text: nil)) { try ListenAddress(text) }
    }

    @Test("of IPv6 need their brackets, and are told so")
    func bare() {
        #expect(throws: ListenAddress.Mistake(text: "takes an IPv6 address in brackets: [fd00::1]:80")) {
            try ListenAddress("fd00::1:80")
        }
    }
}
