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
            (#"{"user": "ann", "password": "a\"b", "size": 3}"#, #"{"user": "ann", "password": "***", "size": 3}"#),
            (#"said "{\"token\":\"abc\",\"n\":1}" twice"#, #"said "{\"token\":\"***\",\"n\":1}" twice"#),
            (#"{"secret":"abc"#, #"{"secret":"***"#),
            ("http://127.0.0.1:8080/#code=0123abcd", "http://127.0.0.1:8080/#code=***"),
            (
                "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sFlKxw-_9 back", "got *** back"
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\\x0aMIIE+/=\\x0a-----END RSA PRIVATE KEY----- is there",
                "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY----- is there"
            ),
            (
                "a\n-----BEGIN PRIVATE KEY-----\nMIIE+/=\nMIIF\n-----END PRIVATE KEY-----\nb",
                "a\n-----BEGIN PRIVATE KEY-----***\n***\n***\n-----END PRIVATE KEY-----\nb"
            ),
            (
                #"reason="key -----BEGIN PRIVATE KEY----- MIIE MlHU *** \x0aab" size=3"#,
                #"reason="key -----BEGIN PRIVATE KEY-----***" size=3"#
            ),
            (
                "x -----BEGIN PRIVATE KEY-----\nx MIIEabcdefghijklmnop\nx uploaded size=3\nx -----END PRIVATE KEY-----.mp4",
                "x -----BEGIN PRIVATE KEY-----***\nx ***\nx uploaded size=3\nx -----END PRIVATE KEY-----.mp4"
            ),
            ("-----BEGIN PRIVATE KEY-----.mp4\nMIIE", "-----BEGIN PRIVATE KEY-----***.mp4\nMIIE"),
            (
                "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"
            ),
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

    @Test("in a text of our own the words after the name of a key stay; an address and a parameter do not")
    func ownText() {
        #expect(redacted("token: it is not set; password=abc", headers: false) == "token: it is not set; password=***")
        #expect(redacted("sent Basic YWJjOmQ= to http://a:b@h", headers: false) == "sent Basic *** to http://***@h")
    }

    @Test("terminal control characters are escaped, and not twice")
    func escapes() {
        #expect(printable("a\u{1B}[31mb\nc") == "a\\x1b[31mb\\x0ac")
        #expect(printable("gpj.\u{202E}4pm") == "gpj.\\xe2\\x80\\xae4pm")
        #expect(printable(FilePath("tür\t✓").display) == "tür\\x09✓")
    }
}
