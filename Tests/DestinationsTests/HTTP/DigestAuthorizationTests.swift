import Core
import Credentials
import Testing
import Transport

@testable import Destinations

@Suite("Digest authorisation")
struct DigestAuthorizationTests {
    private static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    /// The example of RFC 7616, section 3.9.1.
    private static let example = """
        Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=ALGORITHM, \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """

    private func answer(_ challenge: DigestChallenge) -> String {
        challenge.answer(
            user: "Mufasa", password: "Circle of Life", method: "GET", target: "/dir/index.html",
            clientNonce: Self.clientNonce, count: 1)
    }

    @Test(
        "the examples of RFC 7616 give its responses",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func vectors(_ algorithm: String, _ response: String) throws {
        let text = Self.example.replacing("ALGORITHM", with: algorithm)
        let challenge = try #require(DigestChallenge.all(in: ["WWW-Authenticate": text]).first)
        #expect(
            answer(challenge) == """
                Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", \
                nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", response="\(response)", \
                algorithm=\(algorithm), qop=auth, nc=00000001, cnonce="\(Self.clientNonce)", \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
                """)
    }

    @Test("a challenge without `qop` is answered in the form of RFC 2069")
    func old() throws {
        // RFC 2069, section 2.4, with the response that its erratum 749 corrects.
        let text = #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#
        let challenge = try #require(DigestChallenge.all(in: ["WWW-Authenticate": text]).first)
        let answer = challenge.answer(
            user: "Mufasa", password: "CircleOfLife", method: "GET", target: "/dir/index.html", clientNonce: "x",
            count: 1)
        #expect(answer.contains(#"response="1949323746fe6a43ef61f9606e7febea""#), "\(answer)")
        #expect(!answer.contains("qop") && !answer.contains("cnonce"))
    }

    @Test("where the server takes each nonce once, a challenge is asked for before each request with bytes")
    func oneTime() async throws {
        let digest = DigestAuthorization(user: "me", password: .literal("p"), reader: SecretReader())
        func learn(_ nonce: String, isStale: Bool) async {
            let text = "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"" + (isStale ? ", stale=true" : "")
            _ = await digest.learn(["WWW-Authenticate": text], wasRefused: isStale)
        }
        func use() async throws { _ = try await digest.value("PUT", "/", clientNonce: "c") { _ in } }
        #expect(digest.lacksChallenge)
        await learn("n1", isStale: false)
        try await use()
        #expect(!digest.lacksChallenge)
        try await use()
        // The second use was refused.
        await learn("n2", isStale: true)
        #expect(!digest.lacksChallenge)
        try await use()
        #expect(digest.lacksChallenge)
        await learn("n3", isStale: false)
        #expect(!digest.lacksChallenge)
    }

    @Test("the strongest of several challenges is taken, in one header or in several")
    func several() async throws {
        let both = """
            Basic realm="a, b", Digest realm="r\\"q", nonce="n1", qop="auth", algorithm=MD5, \
            Digest realm="r", nonce="n2", qop=auth, algorithm=SHA-256, Negotiate
            """
        let headers: Headers = [
            "WWW-Authenticate": both, "www-authenticate": #"Digest realm="r", nonce="n3", algorithm=SHA-512-256"#,
        ]
        #expect(DigestChallenge.all(in: headers).count == 2)
        let session = DigestAuthorization(user: "me", password: .literal("secret"), reader: SecretReader())
        #expect(await session.learn(headers, wasRefused: false))
        var hidden: [String] = []
        let value = try #require(
            try await session.value("PUT", "http://h/a?b=c", clientNonce: "c", remember: { hidden.append($0) }))
        #expect(value.contains("nonce=\"n2\"") && value.contains("uri=\"/a?b=c\"") && value.contains("nc=00000001"))
        #expect(hidden == ["secret"])
        let next = try #require(try await session.value("PUT", "http://h/", clientNonce: "c", remember: { _ in }))
        #expect(next.contains("nc=00000002"))
    }

    @Test(
        "what cannot be answered is no challenge",
        arguments: [
            "", "Basic realm=a", "Digest realm=\"a\"", "Digest nonce=\"a\"",
            "Digest realm=a, nonce=b, qop=\"auth-int\"",
            "Digest realm=a, nonce=b, algorithm=SHA-512-256", "Digest", "digest realm=\"a, nonce=\"b",
        ])
    func unusable(_ text: String) { #expect(DigestChallenge.all(in: ["WWW-Authenticate": text]).isEmpty) }
}
