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
            (#"+ PGPASSWORD="a, \"b" SSH_PASS='c d' psql"#, #"+ PGPASSWORD="***" SSH_PASS='***' psql"#),
            (#"{"command":"token=\"a b\" x"}"#, #"{"command":"token=\"***\" x"}"#),
            ("BORG_PASSPHRASE=a MYSQL_PWD=b", "BORG_PASSPHRASE=*** MYSQL_PWD=***"),
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

    private static let body = (0..<4).map { String(repeating: "MIIEv+/\($0)", count: 8) }
    private static let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----")
    /// The lines of a key, as programs and logs print it.
    private static let keyLines: [[String]] = [
        [begin] + body + ["abc=", end], [begin] + body + [end], [begin] + body + ["abc="], [begin] + body,
        [begin, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,0123456789ABCDEF", ""] + body + ["abc=", end],
        [begin, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,0123456789ABCDEF", ""] + body,
        body + ["abc=", end], body + [end], [begin, body[0] + " ", body[1] + "\t"] + body[2...] + ["abc=", end],
        ["-----BEGIN PGP PRIVATE KEY BLOCK-----", ""] + body + ["=abcd", "-----END PGP PRIVATE KEY BLOCK-----"],
        [begin, body[0], "uploaded size=3"] + body[1...] + ["abc=", end],
    ]

    @Test(
        "a private key over several lines is hidden with any line end, after the prefix of a log, encrypted, and cut",
        arguments: keyLines)
    func keys(_ lines: [String]) {
        for lineEnd in ["\n", "\r\n", "\\x0d\n", "\r", " \n"] {
            for prefix in ["", "x ", "    ", "2026-11-30T10:00:00 nas ffmpeg[12]: "] {
                let text = (["starts now"] + lines + ["ended well"]).map { prefix + $0 }.joined(separator: lineEnd)
                for text in [text, text + lineEnd] {
                    let shown = redacted(text)
                    for piece in Self.body + ["abc="] { #expect(!shown.contains(piece), "\(text)\n\(shown)") }
                    #expect(shown.contains("starts now") && shown.contains("ended well"), "\(shown)")
                }
            }
        }
        for text in [lines.joined(separator: "\\x0a"), lines.joined(separator: " ")] where lines[0] != Self.body[0] {
            #expect(!redacted(text).contains("MIIE"), "\(text)\n\(redacted(text))")
        }
    }

    @Test("a private key whose lines stand in quotes, or below which a checksum is, is hidden also where it is cut")
    func quotedKeys() {
        let body = ["lQOYBGd1TeSTBCADhJ8Vf0aXcv1kQmZ3b7P9sL2yWn5tRx4uGo6iEwKdHqYzAlMB", "vHXHPyTOikQN", "=viSz"]
        let whole = ["-----BEGIN PGP PRIVATE KEY BLOCK-----", ""] + body + ["-----END PGP PRIVATE KEY BLOCK-----"]
        for lines in [whole, Array(whole.dropFirst(2)), Array(whole.dropFirst(3))] {
            for text in [lines.joined(separator: "\n"), lines.map { "log: " + $0 }.joined(separator: "\n")] {
                let shown = redacted("starts now\n" + text + "\nended well")
                for piece in body { #expect(!shown.contains(piece), "\(shown)") }
                #expect(shown.hasPrefix("starts now") && shown.hasSuffix("ended well"), "\(shown)")
            }
        }
        let quoted = ["-----BEGIN PRIVATE KEY-----"] + body.prefix(2) + ["-----END PRIVATE KEY-----"]
        for (start, end) in [("\"", "\","), ("'", "\\n',"), ("\"", "\\n\" +")] {
            let shown = redacted("keys: [\n" + quoted.map { "  \(start)\($0)\(end)\n" }.joined() + "]")
            for piece in body.prefix(2) { #expect(!shown.contains(piece), "\(shown)") }
        }
        let log = ["log: bad key: \(quoted[0])", "log: \(body[1])", "log: \(body[0].prefix(36))", "log: \(quoted[3])"]
        #expect(!redacted(log.joined(separator: "\n")).contains(body[0].prefix(36)))
    }

    @Test("a path after the mark of a key, or after one that is cut, is no line of it")
    func pathsAfterKeys() {
        let key = "-----BEGIN PRIVATE KEY-----\nlQOYBGd1TeSTBCADhJ8Vf0aXcv1kQmZ3b7P9sL2yWn5tRx4uGo6iEwKdHqYzAlMB\n"
        for text in [key, "PEM: no start line, expecting -----BEGIN PRIVATE KEY-----\n"] {
            let shown = redacted(text + "copied to /srv/camera/front")
            #expect(shown.hasSuffix("copied to /srv/camera/front"), "\(shown)")
        }
    }

    @Test("marks of a key in the names of files hide no other lines of a log")
    func marksInNames() {
        let names = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"]
        for name in [names[0], names[1], names[0] + ".mp4", names[1] + ".mp4"] {
            let log = ["finished", "uploaded size=3", name, "uploaded b.mp4 to nas", "finished"].joined(separator: "\n")
            let shown = redacted(log).split(separator: "\n").map(String.init)
            #expect(shown.first == "finished" && shown.contains("uploaded size=3"), "\(shown)")
            #expect(shown.suffix(2) == ["uploaded b.mp4 to nas", "finished"], "\(shown)")
        }
        let between = ([names[0]] + ["uploaded b.mp4 to nas", "finished"] + [names[1]]).map { "10:00 \($0)" }
        let shown = redacted(between.joined(separator: "\n")).split(separator: "\n")
        #expect(shown[1...2].elementsEqual(between[1...2].map { $0[...] }))
    }

    @Test(
        "other text is kept",
        arguments: [
            "", "a.mp4", "code=http_503 key=cam1/0001", "https://nas.example:1080/files?page=2",
            "Basic settings are missing", "09:00: token expired", "mail ann@example.org",
            "htpasswd: cannot open /etc/x", "not known: 'password=' in the line",
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
