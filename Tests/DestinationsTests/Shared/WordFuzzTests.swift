import Core
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Headers from a server, read one by one, and checkpoints that a disk has damaged.
@Suite("Fuzz: headers and values of a server", .timeLimit(.minutes(Fuzz.minutes)))
struct WordFuzzTests {
    @Test("a wait is between a second and an hour, and a date a date of the calendar")
    func waits() throws {
        let seeds = [
            "120", "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:60 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
        ]
        let words = [
            "GMT", "+", "-", ":", "60", "00", "Feb", "29", "1969", "99999", "٣", "\u{301}", "Sunday", "UTC", "\0",
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 200)
        try Fuzz("retry-after", rounds: 1500).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            let headers = Headers([("Retry-After", text), ("Date", seeds[Int.random(in: 1...3, using: &round.dice)])])
            for now in [Int64.min, 0, Int64.max] {
                guard let wait = retryAfter(headers, now: WallTime(milliseconds: now)) else { continue }
                try round.expect(wait >= .seconds(1) && wait <= .seconds(3600), "the wait is \(wait)")
            }
            // Without a Date this machine's clock counts, with any value.
            for now in [Int64.min, Int64.max] {
                _ = retryAfter(Headers([("Retry-After", text)]), now: WallTime(milliseconds: now))
            }
            if let number = plainInteger(text) { try round.expect(number >= 0, "the number is \(number)") }
            if let date = httpDate(text) {
                try round.expect((1970...10_000).contains(date.utc.year), "the date is \(date)")
            }
        }
    }

    @Test("an address survives parsing and printing, and only http of the same host counts as the same origin")
    func addresses() throws {
        let base = "https://nas.example:8443/files/"
        let seeds = [
            "/files/abc", "https://nas.example:8443/files/abc?sig=x#y", "//evil.example/x", "http://nas.example/x",
            "https://[2001:db8::1]:8443/x", "../../x", "?q",
        ]
        let words = [
            "//", "/", "?", "#", "@", ":", "\\", "[", "]", "..", ".", "%2f", "%", "\u{301}", "K", "https:", "http:",
            "ftp:",
            "file:", "user:pw@", "evil.example", "nas.example", ":8443", ":08443", "。", "\t", " ", "\0",
        ]
        let allowed = AllowedOrigins(homes: [base])
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 400)
        try Fuzz("addresses", rounds: 2000).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            let address = WebAddress(text)
            try round.expect(WebAddress(address.description).origin == address.origin, "\(address) has another origin")
            let resolved: UploadLocation
            do throws(UploadLocation.RefusedError) {
                resolved = try UploadLocation(text, base: base, allowed: allowed)
            } catch {
                return try round.expect(error.reason.count > 10, "the refusal has no message")
            }
            if !resolved.isAllowed { return }
            let url = Array(resolved.url.utf8)
            try round.expect(url.starts(with: "https://".utf8), "the address leads to \(resolved.url)")
            // Read by bytes like in libcurl: the authority ends at the first of these.
            let authority = url.dropFirst(8).prefix { !"/?#\\".utf8.contains($0) }
            try round.expect(!authority.contains(UInt8(ascii: "@")), "the address has a user: \(resolved.url)")
            try round.expect(
                authority.elementsEqual("nas.example:8443".utf8),
                "the address counts as the own server: \(resolved.url)")
        }
    }

    @Test("an answer to a challenge has whole quoted values and one line, and a server's time of expiry is a time")
    func challenges() throws {
        let seeds = [
            "Digest realm=\"nas\", nonce=\"abc\", qop=\"auth, auth-int\", algorithm=SHA-256, opaque=\"x\\\"y\", stale=true",
            "Basic realm=\"a\", Digest realm=nas, nonce=\"\\\\\", userhash=true, algorithm=MD5-sess", "Digest",
        ]
        let words = [
            "Digest ", "realm=", "nonce=", "qop=", "\"", "\\", ",", "=", " ", "\u{301}", "\u{FE0F}", "é", "\0", "auth",
            "algorithm=", "SHA-256", "userhash=true",
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 400)
        try Fuzz("challenges", rounds: 1500).each(mutator) { round in
            // A line of a head has no others.
            let bytes = round.input.filter { $0 != 10 && $0 != 13 }
            let text = String(decoding: bytes, as: UTF8.self)
            for challenge in DigestChallenge.all(in: Headers([("WWW-Authenticate", text)])) {
                let answer = challenge.answer(
                    user: "me", password: "p", method: "PUT", target: "/a\"b", clientNonce: "c", count: .max)
                var (isQuoted, isEscaped) = (false, false)
                for byte in answer.utf8 {
                    if isEscaped {
                        isEscaped = false
                    } else if byte == UInt8(ascii: "\\"), isQuoted {
                        isEscaped = true
                    } else if byte == UInt8(ascii: "\"") {
                        isQuoted.toggle()
                    }
                }
                try round.expect(!isQuoted && !isEscaped, "the answer is \(answer)")
                try round.expect(!answer.utf8.contains { $0 == 10 || $0 == 13 }, "the answer has lines")
            }
            let times = ["Fri, 31 Dec 9999 23:59:60 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", text]
            let dates = ["Upload-Expires", "Date"].map { ($0, times[Int.random(in: 0..<3, using: &round.dice)]) }
            for now in [Int64.min, 0, Int64.max] {
                let response = Response(status: 204, headers: Headers(dates), url: "http://nas.example")
                _ = UploadExpiry(response, now: WallTime(milliseconds: now))
            }
        }
    }

    @Test("base64 is accepted if valid, and metadata of any form gives pairs")
    func metadata() throws {
        let seeds = ["filename YS5tcDQ=,sha256 MDEwMjAz,is_public", "YWJjZA==", "YWJj", "key value=,,a b c"]
        let words = ["=", "==", ",", " ", "+/", "-_", "A", "AAAA", "\u{301}", "\0", "\r\n"]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 2000)
        try Fuzz("metadata", rounds: 1500).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            if let bytes = bytes(base64: text) {
                try round.expect(Core.bytes(base64: base64(bytes)) == bytes, "the round trip gives other bytes")
                try round.expect(decodeBase64(text) == bytes, "Foundation decodes \(decodeBase64(text) as Any)")
            }
            try round.expect(
                base64(round.input) == (decodeBase64(base64(round.input)).map { base64($0) }),
                "Foundation decodes the text differently")
            let values = TusMetadata.values(text)
            try round.expect(values.count <= text.utf8.count + 1, "\(values.count) pairs")
            if let announced = TusAnnounced(
                Headers([("Tus-Version", text), ("Tus-Extension", text), ("Tus-Max-Size", text)]))
            {
                try round.expect(!announced.versions.isEmpty && announced.maxSize ?? 0 >= 0, "\(announced)")
            }
        }
    }

    @Test("an upload with a damaged checkpoint is sent completely or refused, and never completes without sending")
    func checkpoints() async throws {
        let script = ScriptedTusServer()
        let server = try FakeServer { script.serve($0) }
        let fields = [
            "url": "\(server.url)/u", "offset": "400", "creating": "1", "orphans": "2", "final_bytes_sent": "1",
            "reuploaded": "1", "regressions": "2", "sent_from": "0", "sent_to": "400", "losses": "1", "assumed": "1",
            "gone_seen": "2", "doubts": "1", "damaged": "2", "damaged_at": "400",
        ]
        let lines = fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
        let mutator = Mutator(
            [Array(lines.utf8)], words: ["url: ", "offset: 1000", "offset: -1", "http://127.0.0.1:1/u", "\n"],
            limit: 4000)
        let transport = Transport()
        try await Fuzz("checkpoints", rounds: 60, share: 20).each(mutator) { round in
            script.state.withLock { $0 = ScriptedTusServer.State() }
            var checkpoint = Checkpoint()
            for line in String(decoding: round.input, as: UTF8.self).split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2 else { continue }
                checkpoint[String(parts[0])] = String(parts[1].drop { $0 == " " })
            }
            // Half of them belong to an existing upload.
            let isThere = Bool.random(using: &round.dice)
            let journey = try UploadScenario(
                server.url + "/files", size: 1000, chunk: 400, transport: transport, checkpoint: checkpoint)
            if isThere {
                script.state.withLock {
                    $0 = ScriptedTusServer.State(held: Array(journey.content.prefix(300)), length: 1000, exists: true)
                }
            }
            do {
                let object = try await journey.destination.upload(journey.order, reporter: journey.ledger)
                // An acknowledgement that the last run recorded is trusted; all other bytes must exist at the server.
                let isKnown = checkpoint["offset"].flatMap { Int64($0) } == 1000
                try round.expect(
                    isKnown || script.held == journey.content, "the upload completed without its bytes: \(object)")
            } catch let error as UploadError {
                try round.expect(
                    error.failure.message.split(separator: " ").count > 3, "the message is too short: \(error)")
            }
        }
        await transport.stop()
    }
}
