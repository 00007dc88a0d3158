import Core
import Testing

@testable import Egress

@Suite("The server that a program names")
struct EgressTargetTests {
    private func parse(_ text: String, otherwise port: UInt16? = nil) -> String? {
        EgressTarget(authority: Array(text.utf8)[...], otherwise: port)?.description
    }

    @Test(
        "a name or an address with a port is read, in one spelling",
        arguments: [
            ("nas.example:443", "nas.example:443"), ("NAS.Example.:443", "nas.example:443"),
            ("192.0.2.7:80", "192.0.2.7:80"), ("[2001:DB8::7]:80", "[2001:db8::7]:80"),
            ("[::ffff:192.0.2.7]:80", "192.0.2.7:80"), ("a_b-c.example:1", "a_b-c.example:1"),
            ("xn--nxa.example:65535", "xn--nxa.example:65535"), ("3com.example:80", "3com.example:80"),
        ])
    func valid(_ text: String, _ shown: String) { #expect(parse(text) == shown) }

    @Test(
        "what another program could read as another server is refused",
        arguments: [
            "", ":80", "nas.example", "nas.example:", "nas.example:0", "nas.example:65536", "nas.example:080000",
            "nas.example:+80", "nas.example: 80", "nas.example:80:81", "user@nas.example:80", "nas.example/:80",
            "127.1:80", "0x7f000001:80", "2130706433:80", "0177.0.0.1:80", "1.2.3.4.5:80", "[::1:80", "::1:80",
            "[::1]80", "[nas.example]:80", "[]:80", "..:80", "a..b:80", "nas%2eexample:80", "nas.example\0:80",
            "nas.example\r\n:80", "n\u{e4}s.example:80",
        ])
    func invalid(_ text: String) { #expect(parse(text) == nil) }

    @Test("a label has at most 63 bytes and a name 253")
    func lengths() {
        let label = String(repeating: "a", count: 63)
        #expect(parse("\(label):80") != nil && parse("\(label)a:80") == nil)
        let name = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(name.utf8.count == 253 && parse("\(name):80") != nil && parse("\(name)b:80") == nil)
    }

    @Test("a port that is left out is that of the scheme, where there is one")
    func ports() {
        #expect(parse("nas.example", otherwise: 80) == "nas.example:80")
        #expect(parse("[::2]", otherwise: 443) == "[::2]:443")
        #expect(parse("nas.example:0", otherwise: 80) == nil)
    }

    @Test("no bytes make it crash, and what it accepts has one spelling that it accepts again")
    func anyBytes() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("a0.:[]-_x@%/ \r\0F1".utf8)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            guard let target = EgressTarget(authority: bytes[...], otherwise: 80) else { continue }
            #expect(parse(target.description) == target.description, "\(bytes)")
        }
    }
}
