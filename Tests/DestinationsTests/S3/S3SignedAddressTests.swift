import Core
import TestKit
import Testing
import Transport

@testable import Destinations

/// A signer's address is compared with the request, before anything is sent to it.
@Suite("s3: addresses signed for something else", .timeLimit(.minutes(Patience.minutes(2))))
struct S3SignedAddressTests {
    private typealias Scene = S3PresignTests.Scene

    struct Lie: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The message for a person.
        let words: String
        let change: @Sendable (String) -> String

        init(_ name: String, _ words: String, _ change: @escaping @Sendable (String) -> String) {
            (testDescription, self.words, self.change) = (name, words, change)
        }

        /// The same message for everything that leads to another object in some bucket.
        init(_ name: String, replacing old: String, with new: String) {
            self.init(name, "gives the address of another object than `front/clip.mp4` in bucket") {
                $0.replacing(old, with: new)
            }
        }
    }

    static let lies = [
        Lie("another bucket", replacing: "/bucket/", with: "/bucket-2/"),
        Lie("another bucket in the host", replacing: "://", with: "://bucket-2."),
        Lie("another bucket that begins with the name", replacing: "://", with: "://bucket.2."),
        Lie("no bucket", replacing: "/bucket/", with: "/"),
        Lie("the bucket in the host and in the path", replacing: "://", with: "://bucket."),
        Lie("another folder", replacing: "/front/", with: "/back/"),
        Lie("a folder more", replacing: "/front/", with: "/back/front/"),
        Lie("a folder less", replacing: "/front/", with: "/"),
        Lie("a way round", replacing: "/front/", with: "/front/../front/"),
        Lie("another name", replacing: "clip", with: "clap"),
        Lie("a name that ends so", replacing: "/clip", with: "/eclip"),
        Lie("no name", replacing: "/front/clip.mp4", with: "/"),
        Lie("a version", "with `versionId`, which was not requested") { $0 + "&versionId=3" },
        Lie("another kind of request", "with `acl`, which was not requested") { $0 + "&acl" },
        Lie("a parameter twice", "with a parameter twice") { $0.replacing("?", with: "?X-Amz-Signature=a&") },
        Lie("a signature that is coded once too often", "with `Signature=***`, which was not requested") {
            $0.replacing("X-Amz-Signature=", with: "Signature%3D")
        },
        Lie("another host", "gives an address at 127.0.0.2:") { $0.replacing("127.0.0.1", with: "127.0.0.2") },
        Lie("a host that ends so", "which is neither at 127.0.0.1:") { $0.replacing("://", with: "://evil") },
        Lie("a host that begins so", "which is neither at 127.0.0.1:") {
            $0.replacing("127.0.0.1", with: "127.0.0.1.evil.example")
        },
        Lie("another port", "gives an address at 127.0.0.1:9, which") {
            $0.replacing(#/127.0.0.1:\d+/#, with: "127.0.0.1:9")
        },
    ]

    /// The moment at which the signer lies: the request, the file size, and the requests that the bucket has received
    /// by then.
    struct Moment: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let question: Int
        let size: Int
        let heard: [String]
    }

    static let moments = [
        Moment(testDescription: "looking for the object", question: 0, size: 900, heard: []),
        Moment(testDescription: "for the whole file", question: 1, size: 900, heard: ["head"]),
        Moment(testDescription: "for a part", question: 2, size: S3PresignTests.size, heard: ["head", "create"]),
    ]

    @Test(
        "an address signed for something else is refused before any byte, and reported without its signature",
        arguments: Tier.sample(lies, 5), moments)
    func refused(_ lie: Lie, _ moment: Moment) async throws {
        let scene = try Scene()
        for _ in 0..<moment.question { scene.signer.script(.address { $0 }) }
        scene.signer.script(.address(lie.change))
        let (staged, recorder) = (try StagedUpload(moment.size), RecordingReporter())
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .misconfigured && error.failure.code == .signerUnusable, "\(error)")
        #expect(error.failure.message.hasPrefix("archive: the signer at 127.0.0.1:"), "\(error)")
        #expect(error.failure.message.contains(lie.words), "\(error)")
        #expect(!error.failure.message.contains("signature-that"), "\(error)")
        #expect(scene.emulator.requests == moment.heard)
        #expect(recorder.sent.allSatisfy { $0 == 0 })
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged))
    }

    @Test(
        "an address for another upload's part, or another part of the upload, is refused as well",
        arguments: ["partNumber", "uploadId"])
    func parts(_ name: String) async throws {
        let scene = try Scene()
        scene.signer.script(.address { $0 }, .address { $0 }, .address { $0.replacing("\(name)=", with: "\(name)=9") })
        let (staged, recorder) = (try StagedUpload(S3PresignTests.size), RecordingReporter())
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .misconfigured && error.failure.message.contains("without `\(name)`, or with another"))
        #expect(scene.emulator.requests == ["head", "create"])
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged))
    }

    @Test("if the endpoint is https no byte is sent over http")
    func plain() async throws {
        let scene = try Scene()
        let destination = try S3(
            [
                "endpoint": .text(scene.emulator.url.replacing("http:", with: "https:")), "bucket": .text("bucket"),
                "presign.url": .text(scene.signer.url), "presign.token": .secret(.file(scene.tokenFile)),
            ], Scene.tools)
        scene.signer.script(.address { $0.replacing("https:", with: "http:") })
        let staged = try StagedUpload(900)
        let error = try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            })
        #expect(error.remedy == .misconfigured)
        #expect(error.failure.message.contains("gives an http address at 127.0.0.1:"), "\(error)")
        #expect(error.failure.message.hasSuffix(", and the endpoint is https"), "\(error)")
        #expect(scene.signer.questions.count == 1 && scene.emulator.requests.isEmpty)
    }

    @Test("the bucket is in the host or the path, and a configured host may be the bucket's own")
    func places() {
        let wanted = S3SigningRequest(S3Request(method: "HEAD", key: "front/clip.mp4", what: "a question"))
        func isTaken(_ place: String, _ others: [String] = []) -> Bool {
            let hosts = S3SignedHosts(endpoint: WebAddress("https://s3.example"), others: others, bucket: "bucket")
            let answer = JSONValue.object(["url": .text("https://\(place)/front/clip.mp4?X-Amz-Signature=0")])
            return (try? S3SignedAddress(answer, for: wanted, at: hosts, now: WallTime(milliseconds: 0))) != nil
        }
        #expect(isTaken("s3.example/bucket"))
        #expect(isTaken("bucket.s3.example"))
        #expect(!isTaken("s3.example"))
        #expect(!isTaken("other.s3.example/bucket"))
        #expect(!isTaken("bucket.other.s3.example"))
        #expect(!isTaken("bucket.s3.example/bucket"))
        let others = ["cdn.example"]
        #expect(isTaken("cdn.example", others))
        // The dot only says that the name is complete.
        #expect(isTaken("bucket.s3.example.") && isTaken("CDN.example.", others))
        #expect(isTaken("cdn.example", ["cdn.example."]))
        #expect(isTaken("cdn.example/bucket", others))
        #expect(isTaken("bucket.cdn.example", others))
        #expect(!isTaken("bucket.cdn.example/bucket", others))
        #expect(!isTaken("other.cdn.example/bucket", others))
        #expect(!isTaken("cdn.example/other", others))
    }
}
