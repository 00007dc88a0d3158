import Core
import Testing

@Suite("Redaction")
struct RedactionTests {
    @Test(
        "secrets are removed",
        arguments: [
            ("it has AccessKeySecret=abcSECRETabc of mine", "it has AccessKeySecret=*** of mine"),
            ("SecurityToken: CAIS+/x", "SecurityToken: ***"),
            ("PUT https://ann:pw@nas.example/x", "PUT https://***@nas.example/x"),
            ("https://a@b@host/", "https://***@host/"),
            ("https://h/f?X-Amz-Signature=abc&X-Amz-Date=1", "https://h/f?X-Amz-Signature=***&X-Amz-Date=1"),
            ("https://h/f?key=abc#top", "https://h/f?key=***#top"),
            ("https://h/f?a=1&sig=a%2Fb=", "https://h/f?a=1&sig=***"),
            ("token=abc, size=3", "token=***, size=3"),
            ("Authorization: Bearer abc.def", "Authorization: ***"),
            ("sent Bearer eyJhbGciOi.x and more", "sent Bearer *** and more"),
            ("said \"X-Api-Key: 1234\" twice", "said \"X-Api-Key: ***\" twice"),
        ])
    func hides(_ text: String, _ shown: String) {
        #expect(redacted(text) == shown)
    }

    @Test(
        "other text is kept",
        arguments: [
            "", "a.mp4", "code=http_503 key=cam1/0001", "https://nas.example:1080/files?page=2",
            "Basic settings are missing", "09:00: token expired", "mail ann@example.org",
        ])
    func leaves(_ text: String) {
        #expect(redacted(text) == text)
    }

    @Test("terminal control characters are escaped, and not twice")
    func escapes() {
        #expect(printable("a\u{1B}[31mb\nc") == "a\\x1b[31mb\\x0ac")
        #expect(printable("gpj.\u{202E}4pm") == "gpj.\\xe2\\x80\\xae4pm")
        #expect(printable(FilePath("tür\t✓").display) == "tür\\x09✓")
    }
}
