import Digests
import Testing

@testable import Notices

@Suite("Signatures of notices")
struct SignatureTests {
    @Test("the example of the Standard Webhooks specification is reproduced")
    func published() throws {
        let signature = try Signature(secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        #expect(
            signature.of(
                id: "msg_p5jXN8AQM9LWM0D4loKWxJek", moment: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
                == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test("a text without `whsec_` is the key itself, however long")
    func plain() throws {
        let secret = "plain text of more than sixty-four bytes, which are hashed before they are used as a key"
        // Python: hmac.new(secret, b"a.1.", hashlib.sha256)
        #expect(
            try Signature(secret: secret).of(id: "a", moment: 1, body: [])
                == "v1,eSy6C/ukcbsWiagfkYbWTXb4vrOFFHeJULjSwoNultI=")
    }

    @Test("invalid base64 after `whsec_` is refused, without the secret", arguments: ["whsec_", "whsec_!hunter2"])
    func refused(_ secret: String) throws {
        let error = #expect(throws: Signature.UnusableKeyError.self) { _ = try Signature(secret: secret) }
        #expect(error?.description.contains("hunter") == false)
    }

    @Test("HMAC-SHA256 matches RFC 4231")
    func vectors() {
        let digest = Hasher.authentication(
            .sha256, of: Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(digest.prefix(4) == [0x5B, 0xDC, 0xC1, 0x46])
    }
}
