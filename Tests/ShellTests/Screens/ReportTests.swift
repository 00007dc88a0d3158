import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Shell

/// The form of a report, and the names that it hides.
@Suite("Report")
struct ReportTests {
    private static func document(_ lines: [String]) -> ReportDocument {
        var document = ReportDocument(title: "Sluice report", at: WallTime(milliseconds: 1_795_000_000_000))
        document.sections = [ReportDocument.Section(title: "Log", lines: lines)]
        return document
    }

    @Test("hostile text stays text: no markup, no end of the fence, no control character")
    func hostile() {
        let strange = [
            "<script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>", "&lt;b&gt;", "```", "   ````",
            "a `````` b",
            "\u{1B}]0;title\u{07}\u{1B}[2J", "a\u{202E}gpj.exe", "a\rb", "a\u{9B}31m", "</main></html>",
        ]
        let document = Self.document(strange)
        let html = document.html
        for part in ["<script", "<img", "</pre><", "\u{1B}", "\u{07}", "\u{202E}", "\r", "\u{9B}"] {
            #expect(!html.contains(part) && !html.contains("&amp;lt;script"), "\(part)")
        }
        #expect(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("&amp;lt;b&amp;gt;"))
        #expect(html.components("</main>") == 1 && html.components("</pre>") == 1)
        let markdown = document.markdown.split(separator: "\n", omittingEmptySubsequences: false)
        let fences = markdown.indices.filter { markdown[$0].drop { $0 == " " }.hasPrefix("```````") }
        // One opens and one closes, and everything strange is between them.
        #expect(fences.count == 2 && fences[1] - fences[0] == strange.count + 1)
        #expect(!document.markdown.contains("\u{1B}") && !document.markdown.contains("\r"))
    }

    @Test("secrets of the configuration are hidden in any text, and a private key over several lines")
    func secrets() {
        let secrets = KnownSecrets()
        secrets.remember("s3cret-of-nas")
        var document = ReportDocument(title: "Sluice report", at: WallTime(milliseconds: 0), hiding: secrets)
        let lines = [
            "bare s3cret-of-nas here", "coded \(base64(Array("me:s3cret-of-nas".utf8))) here",
            #"{"pwd": "abcdef", "n": 1}"#,
            "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADAN", "-----END PRIVATE KEY-----", "token: it cannot be read",
        ]
        document.sections = [ReportDocument.Section(title: "Log", lines: lines)]
        for secret in ["s3cret", base64(Array("s3cret".utf8)), "abcdef", "MIIE", "it cannot be read"] {
            #expect(!document.markdown.contains(secret) && !document.html.contains(secret), "\(secret)")
        }
        for kept in ["bare *** here", #""n": 1}"#, "END PRIVATE KEY"] {
            #expect(document.markdown.contains(kept), "\(kept)")
        }
        document.sections[0].isOwnText = true
        #expect(document.markdown.contains("token: it cannot be read"))
    }

    @Test("names are hidden in the log, in sentences, in addresses and as parts of paths; the same name has one mark")
    func names() {
        let written = Mutex("")
        let log = Log(format: .plain) { bytes in written.withLock { $0 += String(decoding: bytes, as: UTF8.self) } }
        let path = "/srv/drop/Anna Miller/holiday film.mp4"
        log.info("uploaded", ["id": "01JD3K8QWEDJ3T069W6KMA1001", "path": path, "destination": "nas"])
        log.info(
            "uploaded", ["id": "01JD3K8QWEDJ3T069W6KMA1001", "path": "/srv/drop/unknown.mp4", "destination": "nas"])
        log.info("added", ["name": "holiday film.mp4", "folder": "drop"])
        log.error("copy failed", ["reason": "open \(path): Permission denied (errno 13)"])
        log.error("copy failed", ["reason": "open /srv/drop/Anna Miller/other \"file\".mp4: No such file (errno 2)"])
        log.notice("a person gave a command", ["verb": "cancel", "what": path, "by": "root"])
        var lines = written.withLock { $0 }.split(separator: "\n").map(String.init)
        lines += [
            "PUT https://s3.example/bucket/Anna%20Miller/holiday%20film.mp4: 403",
            "the server said: no room for holiday film.mp4", "  Anna Miller/holiday film.mp4  12 MB",
            "cannot read \(path): Permission denied", "drop  /srv/drop  12 GB free",
            "holiday film.mp4.xmp is its companion",
        ]
        var names = HiddenNames()
        names.roots = ["/srv/drop"]
        names.add(path)
        names.add("holiday film.mp4", relative: "Anna Miller/holiday film.mp4")
        let hidden = names.hide(in: lines)
        let all = hidden.joined(separator: "\n")
        for part in ["Anna", "Miller", "holiday", "film", "unknown", "other"] {
            #expect(!all.contains(part), "\(part)")
        }
        // What helps to judge the machine stays.
        for part in [
            "destination=nas", "01JD3K8QWEDJ3T069W6KMA1001", "Permission denied (errno 13)", "No such file (errno 2)",
            "verb=cancel", "by=root", "https://s3.example/bucket/", ": 403", "12 MB", "drop  /srv/drop  12 GB free",
            ".mp4",
            "cannot read /srv/drop/", ".xmp is its companion",
        ] { #expect(all.contains(part), "\(part)") }
        let marks = hidden.filter { $0.hasPrefix("the server said: ") }.map { $0.suffix(17) }
        // Its path, its path below the watched folder, also percent-coded, and its name.
        #expect(marks.count == 1 && all.components(String(marks.first ?? "?")) == 9)
        // Another report has other marks.
        var other = HiddenNames()
        other.add("holiday film.mp4")
        #expect(other.hide(in: ["holiday film.mp4"]) != [String(marks.first ?? "?")])
    }

    @Test("a name that is also a word is not replaced inside of longer words, nor in the configuration")
    func words() {
        var names = HiddenNames()
        names.add("log")
        names.add("")
        names.add("/")
        names.add("meadow")
        let hidden = names.hide(in: ["catalog, logs, log, path=/a/log, meadows, meadow"])[0]
        #expect(hidden.hasPrefix("catalog, logs, log, path=/a/name-") && hidden.contains(", meadows, name-"))
        #expect(names.hide(in: ["a/b c"]) == ["a/b c"])
        var document = Self.document(["log"])
        document.sections.append(
            ReportDocument.Section(title: "Configuration", lines: ["log: 1"], isOfConfiguration: true))
        document.sections[0].lines = ["/a/log"]
        document.hide(names)
        #expect(document.sections[0].lines != ["/a/log"] && document.sections[1].lines == ["log: 1"])
    }

    @Test("ids of uploads are found in lines of the log")
    func ids() {
        let id = "01JD3K8QWEDJ3T069W6KMA1001"
        #expect(ReportSections.uploadIDs("uploaded id=\(id) path=/a/b") == [id])
        #expect(ReportSections.uploadIDs("{\"id\":\"\(id)\",\"event\":\"uploaded\"}") == [id])
        #expect(ReportSections.uploadIDs("nothing here, not even 01JD3K8QWEDJ3T069W6KMA100").isEmpty)
    }
}

extension String {
    /// How often a text is in it.
    fileprivate func components(_ text: String) -> Int {
        var (count, rest) = (0, self[...])
        while let range = rest.firstRange(of: text) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
