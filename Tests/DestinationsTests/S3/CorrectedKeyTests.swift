import Core
import Credentials
import Glibc
import Linux
import TestKit
import Testing

@testable import Destinations

/// At servers that check signatures.
@Suite("Keys corrected in place", .timeLimit(.minutes(Patience.minutes(5))))
struct CorrectedKeyTests {
    private let temporary = TemporaryFolder()

    private func put(_ text: String) throws -> FilePath { try temporary.write("secret", Array(text.utf8)) }

    /// As long as the correct one.
    private static func mistyped(_ secret: String) -> String { String(secret.dropLast()) + "X" }

    /// Refused with the wrong one, and accepted in the next attempt with the value that is in the file then.
    private func prove(
        _ destination: any Destination, _ secret: String, size: Int, _ codes: [String]
    ) async throws {
        let staged = try StagedUpload(size)
        for _ in 0..<2 {
            let error = await #expect(throws: UploadError.self) {
                _ = try await destination.upload(staged.order, reporter: RecordingReporter())
            }
            #expect(error?.remedy == .authenticate, "\(String(describing: error))")
            #expect(codes.contains(error?.failure.code.rawValue ?? ""), "\(String(describing: error))")
        }
        _ = try put(secret)
        let object = try await destination.upload(staged.order, reporter: RecordingReporter())
        #expect(object.id == "front/clip.mp4")
    }

    @Test(
        "OSS accepts the corrected key, for every signature and upload method",
        arguments: Tier.sample(["v4", "v1"]),
        [1000, 300_000])
    func oss(_ signature: String, _ size: Int) async throws {
        try await OSSEnd.open { end in
            let file = try put(Self.mistyped(OSSServer.secretKey))
            let destination = try end.destination([
                "secret_key": .secret(.file(file)), "signature": .text(signature),
            ])
            try await prove(destination, OSSServer.secretKey, size: size, ["SignatureDoesNotMatch"])
        }
    }

    @Test("S3 servers accept the corrected key as well", arguments: S3Maker.here.filter(\.checksKeys))
    func s3(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            let file = try put(Self.mistyped(S3Server.secretKey))
            let destination = try end.destination(["secret_key": .secret(.file(file))])
            try await prove(
                destination, S3Server.secretKey, size: 1000, ["SignatureDoesNotMatch", "AccessDenied", "http_403"])
        }
    }

    @Test("VOD and its storage accept the corrected key as well")
    func vod() async throws {
        let file = try put(Self.mistyped(OSSServer.secretKey))
        try await ApsaraEnd.open(.key, ["secret_key": .secret(.file(file))]) { end in
            let staged = try StagedUpload(1000)
            #expect(try await staged.failure(to: end).remedy == .authenticate)
            _ = try put(OSSServer.secretKey)
            _ = try await staged.send(to: end, RecordingReporter())
        }
    }

    @Test("a key without permission is read again after each refusal, and used twice only if another is there")
    func denied() async throws {
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        emulator.change {
            $0.judge = { exchange in
                exchange.header("authorization")?.contains("AKRIGHT") == true ? nil : (403, "AccessDenied", "no")
            }
        }
        let file = try put("AKWRONG")
        let scene = try S3Scene(
            ["access_key": .secret(.file(file)), "secret_key": .secret(.literal("no-matter")), "preset": .text("aws")],
            at: emulator, without: ["credentials"])
        let staged = try StagedUpload(900)
        #expect(try await staged.failure(to: scene).failure.code == .service("AccessDenied"))
        #expect(emulator.requests.count { $0 == "put" } == 1, "no other key exists, so no second try")
        _ = try put("AKRIGHT")
        emulator.change { $0.requests = [] }
        #expect(try await staged.send(to: scene, RecordingReporter()).verifiedBy != "held")
        #expect(emulator.requests.filter { $0 == "put" }.count == 1)
        // While the key is used, the secret is not read.
        _ = try put("AKWRONG")
        _ = try await StagedUpload(900, id: "2", name: "other.mp4", seed: 2).send(to: scene, RecordingReporter())
    }

    @Test("a key corrected during its request counts for the same attempt")
    func meanwhile() async throws {
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        let path = temporary.path.appending("secret")
        emulator.change {
            $0.judge = { exchange in
                if exchange.header("authorization")?.contains("AKRIGHT") == true { return nil }
                // A failure shows in the final content.
                try? Files.replace(path, with: Array("AKRIGHT".utf8))
                return (403, "AccessDenied", "no")
            }
        }
        let file = try put("AKWRONG")
        let scene = try S3Scene(
            ["access_key": .secret(.file(file)), "secret_key": .secret(.literal("no-matter"))], at: emulator,
            without: ["credentials"])
        let staged = try StagedUpload(S3Scene.size)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
    }
}
