import Core
import Linux
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// A signer with faults.
@Suite("s3: signers that fail or lie", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct S3SignerTests {
    private typealias Scene = S3PresignTests.Scene

    struct Trouble: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var fault: SignerServer.Fault
        var remedy: Remedy
        var words: String

        init(_ name: String, _ fault: SignerServer.Fault, _ remedy: Remedy, _ words: String) {
            (testDescription, self.fault, self.remedy, self.words) = (name, fault, remedy, words)
        }
    }

    private static func replacing(_ old: String, _ new: String) -> SignerServer.Fault {
        .address { $0.replacing(old, with: new) }
    }

    static let troubles = [
        Trouble("500", .answer(500, "down"), .holdDestination(after: nil), "answered 500 to the request for a signed"),
        Trouble("429", .answer(429), .rateLimit(after: nil), "answered 429"),
        Trouble("403", .answer(403, "this box may not"), .authenticate, "this box may not"),
        Trouble("404", .answer(404), .misconfigured, "answered 404"),
        Trouble("302", .answer(302), .misconfigured, "it redirects"),
        Trouble("a page", .answer(200, "<html>log in</html>"), .holdDestination(after: nil), "than JSON with a list"),
        Trouble("nothing", .answer(200, #"{"signed":[]}"#), .holdDestination(after: nil), "than JSON with a list"),
        Trouble(
            "no address", .answer(200, #"{"signed":[{"uri":"x"}]}"#), .misconfigured, "gives no address for `head`"),
        Trouble("an odd life", .answer(200, #"{"signed":[{"url":1}]}"#), .misconfigured, "gives no address for `head`"),
        Trouble("no life", .life(0), .misconfigured, "has ended already"),
        Trouble("a negative life", .life(-5), .misconfigured, "has ended already"),
        Trouble(
            "another scheme", .address { _ in "ftp://a/bucket/front/clip.mp4" }, .misconfigured, "something other than"),
        Trouble("a line end", .address { $0 + "\r\n" }, .misconfigured, "something other than an http"),
        Trouble("a user", replacing("http://", "http://a:b@"), .misconfigured, "something other than an http"),
        Trouble(
            "another host", replacing("127.0.0.1", "127.0.0.2"), .misconfigured, "neither at 127.0.0.1:"),
        Trouble(
            "another port", .address { $0.replacing(#/127.0.0.1:\d+/#, with: "127.0.0.1:9") }, .misconfigured,
            "gives an address at 127.0.0.1:9, which is neither"),
        Trouble("another object", replacing("clip", "clap"), .misconfigured, "the address of another object than"),
        Trouble("bad coding", replacing("clip", "cl%ip"), .misconfigured, "badly coded"),
        Trouble("a header", .headers(["Host": "a"]), .misconfigured, "the header `Host`, which cannot be set"),
        Trouble(
            "its own no", .refuse("this box is retired", isFinal: false), .authenticate, "`head`: this box is retired"),
        Trouble(
            "its no with an address",
            .refuse(
                "not https://s3.example/b/k?AWSAccessKeyId=signature-that-1&X-Amz-Credential=signature-that-2%2Fx"
                    + "&X-Amz-Signature=signature-that-leaks", isFinal: false), .authenticate,
            "AWSAccessKeyId=***&X-Amz-Credential=***&X-Amz-Signature=***"),
        Trouble("its last no", .refuse("no such camera", isFinal: true), .failUpload, "refuses `head`: no such camera"),
    ]

    @Test("the failure is reported, nothing is sent to the bucket, and the next attempt works", arguments: troubles)
    func trouble(_ trouble: Trouble) async throws {
        let scene = try Scene()
        scene.signer.script(trouble.fault)
        let staged = try StagedUpload(900)
        let error = try await staged.failure(to: scene)
        #expect(error.remedy == trouble.remedy)
        #expect(error.failure.message.contains(trouble.words), "\(error)")
        #expect(error.failure.message.hasPrefix("archive: "))
        #expect(!error.failure.message.contains("signature-that"), "\(error)")
        #expect(scene.emulator.requests.isEmpty)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
    }

    @Test("a missing or past end is refused; one in seconds of any spelling counts")
    func ends() throws {
        let wanted = S3SigningRequest(S3Request(method: "HEAD", key: "clip.mp4", what: "a question"))
        let hosts = S3SignedHosts(endpoint: WebAddress("https://s3.example"), others: [], bucket: "bucket")
        func life(_ expires: String) throws -> Duration? {
            let text = #"{"url":"https://s3.example/bucket/clip.mp4?X-Amz-Signature=0","expires":\#(expires)}"#
            let json = try #require(JSONValue.read(Array(text.utf8)))
            return try S3SignedAddress(json, for: wanted, at: hosts, now: WallTime(milliseconds: 0)).life
        }
        for words in ["0", "-1", "-0.5", "-1e300", "true", "[]", "{}", #""soon""#, #""""#] {
            #expect(throws: S3SignedAddress.Problem.self, "\(words)") { try life(words) }
        }
        #expect(try life("null") == nil)
        #expect(try life("0.5") == .milliseconds(500))
        #expect(try life("900.0") == .seconds(900))
        #expect(try life("1e300") == .seconds(7 * 86_400))
    }

    @Test("an answer with the parts in another order sends none to the wrong place")
    func order() async throws {
        let scene = try Scene()
        let staged = try StagedUpload(S3PresignTests.size)
        scene.signer.script(
            .address { $0 }, .address { $0 },
            .address { url in url.replacing(#/partNumber=\d/#, with: "partNumber=\(url.contains("=1&") ? 2 : 1)") })
        let error = try await staged.failure(to: scene)
        #expect(error.remedy == .misconfigured && error.failure.message.contains("without `partNumber`"), "\(error)")
        #expect(scene.emulator.requests == ["head", "create"])
    }

    @Test("an unreachable signer is a hold, and its secret is read again when refused")
    func away() async throws {
        let scene = try Scene()
        scene.signer.change { $0.token = "second-token-of-it" }
        let staged = try StagedUpload(900)
        let error = try await staged.failure(to: scene)
        #expect(error.remedy == .authenticate && error.failure.message.contains("answered 401"), "\(error)")
        #expect(!error.failure.message.contains("first-token"))
        try Files.replace(scene.tokenFile, with: Array("second-token-of-it\n".utf8))
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        scene.signer.stop()
        let second = try await StagedUpload(900, name: "b").failure(to: scene)
        #expect(second.remedy == .holdDestination(after: nil) && second.failure.code == .unreachable, "\(second)")
        #expect(second.failure.message.hasPrefix("archive: no signer at 127.0.0.1:"), "\(second)")
    }

    @Test("without lists uploads continue, and a query for one is answered with the reason")
    func lists() async throws {
        let scene = try Scene()
        #expect(
            await scene.destination.check()
                == CheckResult(.ok, "the signer's addresses work, and the bucket has 0 object(s)").about(.credentials))
        scene.signer.change { $0.refused = ["list", "uploads"] }
        // Started without a received answer: it cannot be found, and is started again.
        scene.emulator.script(.create, .loseReply)
        let staged = try StagedUpload(S3PresignTests.size)
        let object = try await scene.bring(staged)
        #expect(scene.emulator.objects["front/clip.mp4"]?.bytes == staged.content)
        #expect(!object.warnings.isEmpty)
        let check = await scene.destination.check()
        #expect(
            check.verdict == .ok && check.detail.contains("refuses `list`: not here; `sluice remote` needs it"),
            "\(check)")
        await #expect {
            _ = try await scene.destination.unfinished()
        } throws: { "\($0)".contains("refuses `uploads`: not here; `sluice orphans` needs it") }
        scene.signer.change { $0.refused = ["list", "head"] }
        #expect(await scene.destination.check().verdict == .failed)
    }

    @Test("a program is asked on standard input, and its failures are reported")
    func programs() async throws {
        let temporary = TemporaryFolder()
        let seen = temporary.path.appending("seen")
        let script = try temporary.writeProgram(
            "sign", "tee '\(seen.display)' > /dev/null; echo \"$#\" >> '\(seen.display)'; exit 3")
        let emulator = try S3Emulator()
        func error(_ command: [String]) async throws -> UploadError {
            let destination = try S3(
                [
                    "endpoint": .text(emulator.url), "bucket": .text("bucket"), "presign.command": .texts(command),
                ], Scene.tools)
            let staged = try StagedUpload(10, name: "it's \"$(reboot)\".mp4")
            return try #require(
                await #expect(throws: UploadError.self) {
                    try await destination.upload(staged.order, reporter: RecordingReporter())
                })
        }
        let failed = try await error([script.display, "a-secret-argument"])
        #expect(failed.remedy == .holdDestination(after: nil))
        #expect(
            failed.failure.message.contains("the signer \(script.display) gives no answer: it ended with status 3"))
        #expect(!failed.failure.message.contains("a-secret"))
        let question = String(decoding: try Files.read(seen), as: UTF8.self)
        #expect(question.contains(#""key":"it's \"$(reboot)\".mp4""#) && question.hasSuffix("1\n"), "\(question)")
        let missing = try await error(["/nonexistent/sign"])
        #expect(missing.failure.message.contains("it cannot be started"), "\(missing)")
        let odd = try await error(["/bin/echo", "hello"])
        #expect(odd.failure.message.contains("the signer /bin/echo gives something other than JSON"), "\(odd)")
        #expect(emulator.requests.isEmpty)
    }

    @Test("the route that is evaluated is the bucket's, or the signer's if the bucket is on this machine")
    func site() throws {
        func site(_ endpoint: String, _ signer: String) throws -> DestinationSite {
            try S3(
                ["endpoint": .text(endpoint), "bucket": .text("bucket"), "presign.url": .text(signer)], Scene.tools
            ).site
        }
        #expect(
            try site("https://s3.example", "https://sign.example/x") == .server(host: "s3.example", port: 443))
        #expect(
            try site("http://127.0.0.1:9000", "https://sign.example/x") == .server(host: "sign.example", port: 443))
        #expect(try site("http://127.0.0.1:9000", "http://[::1]:81") == .server(host: "::1", port: 81))
    }

    @Test("addresses lead to the endpoint, below it, or to a configured place; never from https to http")
    func places() {
        func objection(_ endpoint: String, _ others: [String], _ url: String) -> String? {
            S3SignedHosts(endpoint: WebAddress(endpoint), others: others, bucket: "bucket").objection(
                to: WebAddress(url))
        }
        let aws = "https://s3.eu-central-1.amazonaws.com"
        #expect(objection(aws, [], "https://s3.eu-central-1.amazonaws.com/b/k") == nil)
        #expect(objection(aws, [], "https://b.s3.eu-central-1.amazonaws.com:443/k") == nil)
        #expect(objection(aws, [], "https://b.s3.amazonaws.com/k") != nil)
        #expect(objection(aws, ["s3.amazonaws.com"], "https://b.s3.amazonaws.com/k") == nil)
        #expect(
            objection(aws, [], "http://s3.eu-central-1.amazonaws.com/b/k")?.contains("the endpoint is https") == true)
        #expect(objection(aws, ["nas.example"], "http://nas.example/k") != nil)
        #expect(objection(aws, [], "https://evils3.eu-central-1.amazonaws.com/k") != nil)
        #expect(objection(aws, [], "https://s3.eu-central-1.amazonaws.com.evil.example/k") != nil)
        #expect(objection("http://nas:9000", [], "http://nas:9000/b/k") == nil)
        #expect(objection("http://nas:9000", [], "http://nas/b/k") != nil)
        #expect(objection("http://nas:9000", ["nas:9443"], "https://nas:9443/b/k") == nil)
    }
}
