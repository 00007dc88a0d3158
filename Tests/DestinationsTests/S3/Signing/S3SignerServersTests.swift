import Core
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// The signer from the manual with third-party servers: rclone's checks its signatures.
@Suite(
    "s3 with the manual's signer and third-party servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5)))
)
struct S3SignerServersTests {
    enum SignerKind: String, CaseIterable, Sendable { case service, command }

    private static let makers = [S3Maker.rclone, .moto]

    private func open(
        _ maker: S3Maker, _ way: SignerKind, _ more: [String: SettingValue] = [:], prefix: String = "",
        _ body: (S3End, any Destination) async throws -> Void
    ) async throws {
        let end = try await S3End(maker)
        do {
            let signer = try await PageSigner(for: end.url, prefix: prefix)
            try await body(end, destination(end, signer, way, more))
        } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }

    private func destination(
        _ end: S3End, _ signer: PageSigner, _ way: SignerKind, _ more: [String: SettingValue] = [:]
    ) throws -> any Destination {
        var values = S3End.values(end.url)
        for key in ["access_key", "secret_key"] { values[key] = nil }
        switch way {
        case .command: values["presign.command"] = .texts(signer.command)
        case .service:
            values["presign.url"] = .text(signer.url)
            values["presign.token"] = .secret(.literal(PageSigner.token))
        }
        return try S3(values.merging(more) { $1 }, S3PresignTests.Scene.tools)
    }

    @Test(
        "files of any size arrive, in one request or in parts, and are looked up",
        arguments: Tier.sample(makers),
        [0, 1, (1 << 20) + 1, (10 << 20) + 1])
    func sizes(_ maker: S3Maker, _ size: Int) async throws {
        try await open(maker, .service, ["storage_class": .text("STANDARD"), "tags": .map(["a": .literal("b c")])]) {
            end, destination in
            #expect(await destination.check().verdict == .ok)
            let staged = try StagedUpload(size, name: "é +(1)/100%'~.mp4")
            #expect(try await destination.find(staged.order) == .absent)
            let recorder = RecordingReporter()
            let object = try await destination.upload(staged.order, reporter: recorder)
            #expect(object.warnings.isEmpty && object.id == "é +(1)/100%'~.mp4")
            let isWhole = try await end.content("é +(1)/100%'~.mp4") == staged.content
            #expect(isWhole)
            #expect(!recorder.everything.contains("X-Amz") && !recorder.everything.contains(S3Server.id))
            #expect(try await destination.unfinished()?.isEmpty == true)
            // The same file once more needs no upload.
            #expect(try await destination.upload(staged.order, reporter: RecordingReporter()).verifiedBy == "held")
            #expect(try await destination.list(after: nil)?.items.map(\.id) == ["é +(1)/100%'~.mp4"])
        }
    }

    @Test("a program can sign as well", arguments: Tier.sample(makers))
    func program(_ maker: S3Maker) async throws {
        try await open(maker, .command) { end, destination in
            let staged = try StagedUpload((10 << 20) + 1)
            #expect(try await destination.upload(staged.order, reporter: RecordingReporter()).warnings.isEmpty)
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        }
    }

    @Test("a checksum in headers is signed with them")
    func checksums() async throws {
        try await open(.rclone, .service, ["checksum": .text("sha256")]) { end, destination in
            let staged = try StagedUpload((10 << 20) + 1)
            _ = try await destination.upload(staged.order, reporter: RecordingReporter())
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        }
    }

    private struct SignedEnd: RemoteFixture {
        let end: S3End
        let destination: any Destination
        var folder: FilePath { end.folder }
        var secret: String? { end.secret }
        func goAway() async throws { try await end.goAway() }
        func close() async throws { try await end.close() }
    }

    @Test("stopped after any note, an upload resumes with the server's state", arguments: Tier.onlyInFull(makers))
    func stops(_ maker: S3Maker) async throws {
        try await open(maker, .service, ["parallel": .whole(1)]) { end, destination in
            let signed = SignedEnd(end: end, destination: destination)
            for note in 1... {
                let name = FilePath("\(note).mp4")
                let staged = try StagedUpload((10 << 20) + 1, id: "\(note)", name: name, seed: UInt64(note))
                let recorder = RecordingReporter()
                let wasStopped = try await staged.sendStopped(to: signed, recorder) { $0.taken == note }
                let accepted = recorder.accepted
                _ = try await staged.send(to: signed, recorder)
                #expect(recorder.sent.allSatisfy { $0 >= accepted }, "note \(note)")
                let isWhole = try await end.content(name) == staged.content
                #expect(isWhole, "stopped at note \(note)")
                if !wasStopped { break }
                try #require(note < 40, "the upload does not end")
            }
            #expect(try await end.unfinished() == 0)
        }
    }

    @Test("refusals of the signer are reported: another prefix for good, a wrong key as a hold")
    func refusals() async throws {
        try await open(.rclone, .service, prefix: "front/") { end, destination in
            let staged = try StagedUpload(10, name: "back/clip.mp4")
            let error = await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            }
            #expect(error?.remedy == .failUpload)
            #expect(
                error?.failure.message.contains("keys of this box begin with front/") == true,
                "\(String(describing: error))")
            let inside = try StagedUpload(10)
            _ = try await destination.upload(inside.order, reporter: RecordingReporter())
            let wrong = try await PageSigner(for: end.url, secretKey: "not-the-key-of-the-server")
            let other = try self.destination(end, wrong, .service)
            let held = await #expect(throws: UploadError.self) {
                try await other.upload(staged.order, reporter: RecordingReporter())
            }
            #expect(held?.remedy == .authenticate)
            let stranger = try self.destination(
                end, wrong, .service, ["presign.token": .secret(.literal("wrong-token"))])
            let check = await stranger.check()
            #expect(check.verdict == .failed && check.detail.contains("answered 401"), "\(check)")
        }
    }

    @Test("the manual's signer signs no request that removes or reads an object, or creates a bucket")
    func strict() async throws {
        let end = try await S3End(.rclone)
        let signer = try await PageSigner(for: end.url)
        let wanted = [
            #"{"operation":"abort","key":"a","query":{},"headers":{}}"#,
            #"{"operation":"parts","key":"a","query":{},"headers":{}}"#,
            #"{"operation":"put","query":{},"headers":{}}"#,
            #"{"operation":"put","key":"a","query":{"acl":""},"headers":{}}"#,
            #"{"operation":"put","key":"a","query":{},"headers":{"x-amz-copy-source":"/b/c"}}"#,
            #"{"operation":"delete","key":"a","query":{},"headers":{}}"#,
            #"{"operation":"list","key":"a","query":{"list-type":"2"},"headers":{}}"#,
        ]
        let program = Program(
            words: signer.command.map { Array($0.utf8) }, environment: Program.plainEnvironment, folder: "/",
            input: Array("{\"requests\":[\(wanted.joined(separator: ","))]}".utf8))
        let answer = try await program.awaitOutput(atMost: 1 << 20, within: .seconds(30))
        let signed = try #require(JSONValue.read(answer)?["signed"]?.items)
        #expect(signed.count == wanted.count)
        #expect(signed.allSatisfy { $0["url"] == nil && $0["error"] != nil }, "\(signed)")
        try await end.close()
    }
}
