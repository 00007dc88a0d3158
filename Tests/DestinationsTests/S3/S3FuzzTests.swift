import Core
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// Possible answers of a signer, and of a machine's metadata service.
@Suite("Fuzz: services for keys and signatures", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct S3FuzzTests {
    private static let url =
        "https://s3.example:9000/bucket/front/clip.mp4?partNumber=3&uploadId=2~a%2Fb&X-Amz-Signature=0123456789abcdef"

    @Test(
        "an accepted address leads to the endpoint, this object and this part, and nowhere else"
    )
    func addresses() throws {
        let seeds = [
            Self.url, Self.url.replacing("s3.example:9000/bucket/", with: "bucket.s3.example:9000/"),
            Self.url.replacing(":9000", with: ""),
        ]
        let words = [
            "//", "/", "?", "#", "@", ":", "\\", "[", "]", "..", "%2f", "%40", "%", "%00", "\u{301}", "http:", "ftp:",
            "user:pw@", "evil.example", "s3.example", "s3.example:9000", ":443", ":09000", ":", "。", "\t", "\0", "&",
            "partNumber=4", "uploadId=x", "front/clip.mp4", "+",
        ]
        var request = S3Request(method: "PUT", key: "front/clip.mp4", what: "part 3")
        request.query = [("partNumber", "3"), ("uploadId", "2~a/b")]
        let wanted = S3SigningRequest(request)
        let hosts = S3SignedHosts(endpoint: WebAddress("https://s3.example:9000"), others: [], bucket: "bucket")
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 400)
        try Fuzz("signed addresses", rounds: 2000).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            let answer = JSONValue.object(["url": .text(text)])
            guard let given = try? S3SignedAddress(answer, for: wanted, at: hosts, now: WallTime(milliseconds: 0))
            else {
                return
            }
            let rest = given.url.dropFirst("https://".count)
            let authority = rest.prefix { !"/?#\\".contains($0) }
            try round.expect(
                given.url.lowercased().hasPrefix("https://"), "the address has another scheme: \(given.url)")
            // A dot at the end of a name leads to the same host.
            let place = authority.lowercased().replacing(".:", with: ":")
            let isInHost = place == "bucket.s3.example:9000"
            try round.expect(
                isInHost || place == "s3.example:9000",
                "the address leads to another host: \(given.url)")
            let parts = rest.dropFirst(authority.count).prefix { $0 != "#" }.split(separator: "?", maxSplits: 1)
            try round.expect(
                parts.first.flatMap { PercentCoding.text(decoding: $0) }
                    == (isInHost ? "" : "/bucket") + "/front/clip.mp4",
                "the address leads to another object: \(given.url)")
            let query = PercentCoding.query(decoding: parts.count > 1 ? parts[1] : "") ?? [:]
            try round.expect(
                query["partNumber"] == "3" && query["uploadId"] == "2~a/b",
                "the address leads to another part: \(given.url)")
        }
    }

    @Test("any answer is parsed, or refused with a message")
    func answers() throws {
        let seeds = [
            "{\"url\":\"\(Self.url)\",\"headers\":{\"x-amz-acl\":\"private\"},\"expires\":900}",
            "{\"url\":\"\(Self.url)\",\"expires\":\"2026-11-23T00:00:00Z\"}", "{\"error\":\"no\",\"final\":true}",
        ]
        let words = [
            "null", "true", "[]", "{}", "1e99", "-1", "9223372036854775807", "\"", "\\u0000", "Host", "Authorization",
            "\\r\\n", "expires", "headers", "error",
        ]
        let wanted = S3SigningRequest(S3Request(method: "HEAD", key: "front/clip.mp4", what: "a question"))
        let hosts = S3SignedHosts(endpoint: WebAddress("https://s3.example:9000"), others: [], bucket: "bucket")
        try Fuzz("answers of a signer", rounds: 1000).each(
            Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 600)
        ) {
            round in
            guard let json = JSONValue.read(round.input) else { return }
            do {
                let given = try S3SignedAddress(json, for: wanted, at: hosts, now: WallTime(milliseconds: 0))
                let names = given.headers.map { $0.0.lowercased() }
                try round.expect(
                    !names.contains("host") && !names.contains("authorization"), "the signer sets the headers \(names)")
                if let life = given.life { try round.expect(life >= .zero, "the lifetime is \(life)") }
            } catch S3SignedAddress.Problem.wrong(let words) {
                try round.expect(words.count > 10, "the refusal has no message")
            } catch S3SignedAddress.Problem.refused {}
        }
    }
}
