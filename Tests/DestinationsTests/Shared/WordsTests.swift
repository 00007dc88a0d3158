import Core
import Testing
import Transport

@testable import Destinations

@Suite("Addresses")
struct AddressTests {
    /// RFC 3986, section 5.4, without the fragments, which are never sent.
    static let rfc: [(String, String)] = [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
        ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"), ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("http://x/y", "http://x/y"),
    ]

    @Test("addresses resolve as RFC 3986 says", arguments: rfc)
    func resolves(_ reference: String, _ target: String) {
        #expect(WebAddress("http://a/b/c/d;p?q").resolving(reference).description == target)
    }

    @Test(
        "an upload's address stays exactly as the server wrote it",
        arguments: [
            ("abc", "https://h:8/abc"), ("/files/a+b~c%2F?sig=x%3D&y", "https://h:8/files/a+b~c%2F?sig=x%3D&y"),
            ("https://h:8/a//b/./c/", "https://h:8/a//b/./c/"), ("?id=7", "https://h:8/files?id=7"),
            // The host as configured.
            ("//h:8/x", "https://h:8/x"), ("HTTPS://H:08/X", "https://h:8/X"), ("https://h.:8/x", "https://h:8/x"),
        ])
    func exact(_ location: String, _ url: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8/files"])
        let resolved = try TusLocation(location, base: "https://h:8/files", allowed: allowed)
        #expect(resolved == TusLocation(url: url, isAllowed: true))
    }

    @Test(
        "an address at another origin is recognised, and stays unchanged",
        arguments: [
            ("//other/x", "https://other/x"), ("https://store.test/x?s=a%2F", "https://store.test/x?s=a%2F"),
            ("https://h/x", "https://h/x"), ("https://h:9/x", "https://h:9/x"), ("http://h:8080/x", "http://h:8080/x"),
            ("http://other/x", "http://other/x"), ("https://h.evil.test:8/x", "https://h.evil.test:8/x"),
            ("https://evilh:8/x", "https://evilh:8/x"), ("//h/x", "https://h/x"),
        ])
    func elsewhere(_ location: String, _ url: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8/files"])
        let resolved = try TusLocation(location, base: "https://h:8/files", allowed: allowed)
        #expect(resolved == TusLocation(url: url))
    }

    @Test(
        "http for an https server is corrected for the same host",
        arguments: ["http://h/x", "http://h:80/x", "http://H/x"])
    func mended(_ location: String) throws {
        let allowed = AllowedOrigins(homes: ["https://h:8443/files"])
        let resolved = try TusLocation(location, base: "https://h:8443/files", allowed: allowed)
        #expect(resolved == TusLocation(url: "https://h:8443/x", isSchemeUpgraded: true, isAllowed: true))
    }

    @Test(
        "invalid addresses are refused",
        arguments: [
            "ftp://h/x", "https://h%2e/x", "https://h\\.evil.test/x", "https://h:0/x", "https://h:99999/x",
            "https://[::1/x",
            "https://\u{212A}/x", "file:///etc/passwd", "https://me:pw@h/x", "https:///x",
            "/a b", "/a\r\nX: y", "javascript:alert(1)", "https://me@\u{301}h/x", "//me@\u{301}@\u{301}h/x",
            "/" + String(repeating: "a", count: 9000),
        ])
    func refused(_ location: String) {
        #expect(throws: TusLocation.Refused.self) {
            try TusLocation(location, base: "https://h/files", allowed: AllowedOrigins(homes: ["https://h/files"]))
        }
    }

    @Test(
        "an origin is scheme, host and port",
        arguments: [
            ("https://H/x", "https://h:443"), ("http://h", "http://h:80"), ("http://[::1]:81/", "http://[::1]:81"),
            ("http://h:/x", "http://h:80"), ("http://u:p@h:9/x", "http://h:9"),
            // A combining accent does not hide the delimiter before it.
            ("http://h/\u{301}x:9", "http://h:80"), ("http://h?\u{301}:9", "http://h:80"),
            ("http://h#\u{301}@x", "http://h:80"), ("http://u@\u{301}h", "http://\u{301}h:80"),
            ("http://[::1]x:81", "http://[::1]x:81"),
            // Other spellings of the same.
            ("https://H.:0443/", "https://h:443"), ("http://[0:0::1]:081/", "http://[::1]:81"),
            ("http://./", "http://.:80"),
        ])
    func origins(_ url: String, _ origin: String) { #expect(WebAddress(url).origin == origin) }
}

@Suite("Values of HTTP headers")
struct WordsTests {
    @Test(
        "numbers are digits only",
        arguments: [
            ("0", 0), ("7", 7), ("9223372036854775807", Int64.max), ("9223372036854775808", nil), ("+1", nil),
            ("-1", nil),
            ("1 2", nil), ("", nil), ("1.0", nil), ("00000000000000000001", nil), ("٣", nil),
        ] as [(String, Int64?)])
    func numbers(_ text: String, _ value: Int64?) { #expect(plainInteger(text) == value) }

    @Test(
        "dates follow RFC 9110",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"),
            ("Thu, 29 Feb 2024 23:59:60 GMT", "2024-03-01T00:00:00.000Z"),
            ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"),
            ("Sat, 31 Dec 2399 00:00:00 GMT", "2399-12-31T00:00:00.000Z"),
        ])
    func dates(_ text: String, _ time: String) { #expect(httpDate(text)?.description == time) }

    @Test(
        "other date formats are not guessed",
        arguments: [
            "1994-11-06T08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT", "", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 31 Feb 2027 08:49:37 GMT",
        ])
    func noDates(_ text: String) { #expect(httpDate(text) == nil) }

    @Test(
        "waits are between a second and an hour, and dates are compared with the server's own clock",
        arguments: [
            ("5", nil, 5), ("0", nil, 1), ("86400", nil, 3600), ("soon", nil, nil), ("-5", nil, nil),
            ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 1),
            ("Thu, 01 Jan 1970 00:00:30 GMT", nil, 20),
        ] as [(String, String?, Int64?)])
    func waits(_ text: String, _ date: String?, _ seconds: Int64?) {
        var headers = Headers([("retry-after", text)])
        if let date { headers.append("Date", date) }
        #expect(retryAfter(headers, now: WallTime(milliseconds: 10_000)) == seconds.map { .seconds($0) })
    }

    @Test("base64 follows RFC 4648", arguments: [0, 1, 2, 3, 4, 5, 100, 255, 256])
    func base64s(_ count: Int) {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        let text = base64(content)
        #expect(decodeBase64(text) == content)
        #expect(bytes(base64: text) == content)
    }

    @Test("invalid base64 is absent", arguments: ["a", "ab", "abc", "a===", "ab=c", "====", "ab c", "ab-_"])
    func noBase64(_ text: String) { #expect(bytes(base64: text) == nil) }
}

@Suite("TusMetadata")
struct TusMetadataTests {
    private func order(_ name: FilePath, _ metadata: [String: String] = [:]) -> UploadOrder {
        UploadOrder(
            id: "01J", generation: 2, file: StagedFile(path: "/s", size: 1, sha256: [0xAB, 0xCD]), name: name,
            mediaType: "video/mp4", modified: 5, metadata: metadata, checkpoint: nil)
    }

    private func header(_ order: UploadOrder, isASCII: Bool = false, isMinimal: Bool = false) -> String {
        TusMetadata.header(order, isASCII: isASCII, isMinimal: isMinimal, isRepeat: false)
    }

    private func text(_ header: String, _ key: String) -> String? {
        TusMetadata.values(header)[key].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("a header has no space after a comma, and the two names that every server knows first")
    func shape() {
        let header = header(order("a/b.mp4", ["title": ""]))
        #expect(!header.contains(", "))
        #expect(header.hasPrefix("filename \(base64(Array("b.mp4".utf8))),filetype "))
        #expect(header.hasSuffix(",title"), "an empty value is written as its key alone")
        #expect(text(header, "sluiceId") == "01J.2")
        #expect(text(header, "sha256") == "abcd")
        #expect(text(header, "relativePath") == "a/b.mp4")
    }

    @Test("a name that is no text is written readably")
    func bytes() {
        let header = header(order(FilePath(bytes: Array("d/a%".utf8) + [0xFF, 0x0A])))
        #expect(text(header, "filename") == "a%25%FF\n")
        #expect(text(header, "sluicePath") == "d/a%25%FF%0A")
    }

    @Test("plain names are sent where a server requires them")
    func ascii() {
        #expect(text(header(order("ä b%.mp4"), isASCII: true), "filename") == "%C3%A4 b%25.mp4")
        #expect(text(header(order("ä b%.mp4")), "filename") == "ä b%.mp4")
    }

    @Test("the header stays under 3 KiB in any case, and drops the least important")
    func cap() {
        let long = FilePath((0..<15).map { _ in String(repeating: "ü", count: 120) }.joined(separator: "/"))
        let header = header(order(long, ["a": String(repeating: "x", count: 3000), "b": "y"]))
        #expect(header.utf8.count <= 3 << 10)
        #expect(text(header, "filename") == String(repeating: "ü", count: 120))
        #expect(text(header, "sluiceId") == "01J.2")
        #expect(text(header, "a") == nil)
    }

    @Test("keys are cleaned, and cannot replace the fixed ones")
    func keys() {
        let header = header(order("n", ["file name,": "1", "filename": "2", "§": "3"]))
        #expect(text(header, "filename") == "n")
        #expect(TusMetadata.values(header)["§"] == nil)
    }

    @Test("minimal metadata has only filename and filetype")
    func minimal() {
        #expect(Set(TusMetadata.values(header(order("n"), isMinimal: true)).keys) == ["filename", "filetype"])
    }

    @Test("spaces anywhere are accepted, as servers echo them")
    func reads() { #expect(Set(TusMetadata.values("a YQ== , b, c  ,d ####").keys) == ["a", "b", "c"]) }
}

@Suite("ChunkSize")
struct ChunkSizeTests {
    @Test("a refused size is halved, down to 256 KiB")
    func halves() {
        let chunks = ChunkSize(64 << 20)
        #expect(chunks.refused(4 << 20))
        #expect(chunks.cap == 2 << 20)
        #expect(chunks.refused(300 << 10))
        #expect(chunks.cap == 256 << 10)
        #expect(!chunks.refused(256 << 10))
    }

    @Test(
        "the size is reduced if no bytes are kept, and raised after eight clean requests to sizes that have not failed")
    func steps() {
        let chunks = ChunkSize(.max)
        chunks.recordNothingKept(64 << 20)
        #expect(chunks.cap == 16 << 20)
        for _ in 0..<7 { chunks.accepted(16 << 20) }
        #expect(chunks.cap == 16 << 20)
        chunks.accepted(16 << 20)
        #expect(chunks.cap == 32 << 20)
        chunks.accepted(5)
        #expect(chunks.cap == 32 << 20)
        for cap: Int64 in [16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10, 64 << 10] {
            chunks.recordNothingKept(chunks.cap)
            #expect(chunks.cap == cap)
        }
    }

    @Test(
        "a size at which no bytes were kept is not tried again for a long time, longer after each failure"
    )
    func keptNothing() {
        let chunks = ChunkSize(32 << 20)
        chunks.recordNothingKept(32 << 20)
        for patience in [64, 128, 256, 512, 1024, 2048, 4096, 4096] {
            #expect(chunks.learned == RequestSize(most: 16 << 20, failed: 32 << 20, patience: patience))
            for _ in 1..<patience { chunks.accepted(16 << 20) }
            #expect(chunks.cap == 16 << 20)
            chunks.accepted(16 << 20)
            #expect(chunks.cap == 32 << 20 && chunks.learned == nil)
            chunks.recordNothingKept(32 << 20)
        }
    }

    @Test("an interruption of a file shorter than the size makes requests shorter than that file")
    func shortFile() {
        let chunks = ChunkSize(64 << 20)
        chunks.recordNothingKept(30 << 20)
        #expect(chunks.learned == RequestSize(most: 16 << 20, failed: 30 << 20, patience: 64))
        chunks.recordNothingKept(10 << 20)
        #expect(chunks.learned == RequestSize(most: 4 << 20, failed: 10 << 20, patience: 64))
    }

    /// The size after cut requests that the remote kept nothing of, each as (sent, whole).
    private func cap(after cuts: [(Int64, Int64)]) -> Int64 {
        let chunks = ChunkSize(64 << 20)
        var checkpoint = OffsetCheckpoint(Checkpoint())
        for (sent, whole) in cuts {
            ChunkSize.noteCut(from: 0, to: sent, of: whole, &checkpoint)
            chunks.learn(from: 0, &checkpoint)
        }
        return chunks.cap
    }

    @Test("small cuts make requests smaller if several are about the same size, and other ones do not")
    func smallCuts() {
        #expect(cap(after: [(600_000, 900_000), (700_000, 900_000)]) == 64 << 20)
        #expect(cap(after: [(600_000, 900_000), (700_000, 900_000), (500_000, 900_000)]) == 256 << 10)
        #expect(cap(after: [(100_000, 900_000), (700_000, 900_000), (200_000, 900_000)]) == 64 << 20)
        #expect(cap(after: Array(repeating: (60_000, 60_000), count: 9)) == 64 << 20)
        #expect(cap(after: Array(repeating: (80_000, 100_000), count: 3)) == 64 << 10)
        #expect(cap(after: [(2 << 20, 8 << 20), (2 << 20, 8 << 20)]) == 4 << 20)
    }

    @Test("the size learned by an earlier run is used, within the present settings")
    func recalls() {
        let chunks = ChunkSize(8 << 20)
        #expect(chunks.learned == nil)
        chunks.recall(RequestSize(most: 16 << 20, failed: 32 << 20, patience: 128))
        #expect(chunks.learned == RequestSize(most: 8 << 20, failed: 32 << 20, patience: 128))
        chunks.recall(RequestSize(most: 1 << 20, failed: 2 << 20, patience: 64))
        for _ in 0..<63 { chunks.accepted(1 << 20) }
        #expect(chunks.cap == 1 << 20)
        // A value that no run can have learned changes nothing.
        for odd in [RequestSize(most: 0, failed: 5, patience: 1), RequestSize(most: 5, failed: -1, patience: -9)] {
            chunks.recall(odd)
            #expect(chunks.cap == 1 << 20)
        }
        chunks.recall(RequestSize(most: 1, failed: 1, patience: .max))
        #expect(chunks.learned == RequestSize(most: ChunkSize.least, failed: 1, patience: 4096))
    }

    @Test("a refused size is not tried again for a long time, and never above the setting")
    func remembers() {
        let chunks = ChunkSize(4 << 20)
        #expect(chunks.refused(2 << 20))
        for _ in 0..<63 { chunks.accepted(1 << 20) }
        #expect(chunks.cap == 1 << 20)
        chunks.accepted(1 << 20)
        #expect(chunks.cap == 2 << 20)
        for _ in 0..<100 { chunks.accepted(chunks.cap) }
        #expect(chunks.cap == 4 << 20)
    }
}
