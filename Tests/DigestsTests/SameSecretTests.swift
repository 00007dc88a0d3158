import Core
import Digests
import TestKit
import Testing

@Suite("Comparison of secrets")
struct SameSecretTests {
    @Test(
        "secrets are equal only if every byte is",
        arguments: [("", "", true), ("a", "a", true), ("a", "b", false), ("a", "aa", false)])
    func secrets(_ a: String, _ b: String, _ same: Bool) {
        #expect(isSameSecret(Array(a.utf8), Array(b.utf8)) == same)
    }
}
