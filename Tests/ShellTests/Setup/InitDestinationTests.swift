import Core
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// `sluice init` for each type of destination that the kit has a server for.
@Suite("sluice init for types of destinations", .timeLimit(.minutes(Patience.minutes(3))))
struct InitDestinationTests {
    private let folder = TemporaryFolder()
    private var typist: Typist { Typist(folder: folder.path) }
    private var etc: FilePath { folder.path.appending("etc") }
    private var file: FilePath { etc.appending("sluice.yaml") }
    private var videos: FilePath { folder.path.appending("videos") }

    init() throws { try Files.makeFolders(videos) }

    private func initialise(_ target: String, secret: String? = nil, _ more: [String] = []) async throws -> (
        status: Child.Ending, said: String
    ) {
        var words = ["init", "--config", file.display, "--folder", videos.display, "--to", target] + more
        if let secret { words += ["--token-file", try folder.write("secret", Array(secret.utf8)).display] }
        let result = try await typist.run(words)
        return (result.status, (result.output + result.errors).split { $0 == " " || $0 == "\n" }.joined(separator: " "))
    }

    private func content(_ path: FilePath) throws -> String { String(decoding: try Files.read(path), as: UTF8.self) }

    @Test(
        "a bucket gets a test file, which is removed; id and key become a credentials file that only the group may read"
    )
    func bucket() async throws {
        let server = try S3Emulator()
        let result = try await initialise(
            "s3 bucket=bucket endpoint=\(server.url) tags.box=7", secret: "AKIDEXAMPLE the-key-of-the-account\n")
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("the key is good"))
        #expect(result.said.contains("a test file arrived, and was removed again"))
        #expect(server.objects.isEmpty && server.requests.contains { $0.hasPrefix("put") })
        let key = etc.appending("bucket.key")
        #expect(
            try content(key)
                == "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = the-key-of-the-account\n")
        #expect(try FileStatus(at: key).mode & 0o007 == 0)
        let text = try content(file)
        #expect(text.contains("    type: s3\n    bucket: bucket\n    endpoint: \"\(server.url)\"\n"), "\(text)")
        #expect(text.contains("    credentials: {file: \(key.display)}"))
        #expect(text.contains("    tags: {box: \"7\"}\n") && !text.contains("the-key"))
        #expect(!result.said.contains("the-key-of"))
        let again = try await initialise(
            "s3 bucket=bucket endpoint=\(server.url) tags.box=7", secret: "AKIDEXAMPLE the-key-of-the-account\n")
        #expect(again.status == .status(0) && again.said.contains("nothing was changed"), "\(again.said)")
    }

    @Test("a key that may not delete gets no test file, unless `any` is asked for, and that one is named")
    func keptInBucket() async throws {
        let server = try S3Emulator()
        server.change {
            $0.judge = { $0.method == "DELETE" ? (403, "AccessDenied", "no") : nil }
        }
        let target = "s3 bucket=bucket endpoint=\(server.url)"
        let result = try await initialise(target, secret: "AKIDEXAMPLE the-key-of-the-account")
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("no test file was sent: the key may not delete objects (s3:DeleteObject)"))
        #expect(server.objects.isEmpty)
        try Files.remove(file)
        try Files.remove(etc.appending("bucket.key"))
        let any = try await initialise(target, secret: "AKIDEXAMPLE the-key-of-the-account", ["--test-file", "any"])
        #expect(any.status == .status(0), "\(any.said)")
        let left = try #require(server.objects.keys.first)
        #expect(any.said.contains("did not remove it: remove \(left) there"))
    }

    @Test("Vimeo gets a short video, which is removed; a token without the scope `delete` gets none")
    func vimeo() async throws {
        let server = try VimeoServer()
        let target = "vimeo url=\(server.url) allow_origins=\(server.bytesURL) video.privacy.view=unlisted"
        let token = "vimeo-token-1\n"
        let result = try await initialise(target, secret: token)
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("a test file arrived, and was removed again"))
        #expect(server.videos.isEmpty && server.requests.contains("removal"))
        #expect(try content(file).contains("    video: {privacy: {view: unlisted}}\n"))
        try Files.remove(file)
        try Files.remove(etc.appending("server.token"))
        server.change { $0.account.scopes = ["public", "private", "upload"] }
        let lesser = try await initialise(target, secret: token)
        #expect(lesser.status == .status(0), "\(lesser.said)")
        #expect(lesser.said.contains("no test file was sent: the token lacks the scope `delete`"))
    }

    @Test("OSS removes the test file; ApsaraVideo VOD gets a short video only when it is asked for", .needsPackages)
    func alibaba() async throws {
        let server = try await OSSServer()
        let key = "\(OSSServer.id) \(OSSServer.secretKey)"
        let result = try await initialise(
            "oss bucket=\(OSSServer.bucket) endpoint=\(server.url) addressing=path region=\(OSSServer.region)",
            secret: key)
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("a test file arrived, and was removed again"))
        #expect(try await server.objects().isEmpty)
        try Files.remove(file)
        let target = "apsara-vod endpoint=\(server.url)"
        let none = try await initialise(target, secret: key)
        #expect(none.status == .status(0), "\(none.said)")
        #expect(none.said.contains("no test file was sent: Sluice removes no finished medium"))
        try Files.remove(file)
        try Files.remove(etc.appending("apsara-vod.key"))
        let any = try await initialise(target, secret: key, ["--test-file", "any"])
        #expect(any.status == .status(0), "\(any.said)")
        #expect(any.said.contains("a test file arrived, and the destination did not remove it"))
        #expect(try await server.objects().count == 1)
    }

    @Test("a form cannot remove a file: it gets a test file only when it is asked for")
    func form() async throws {
        let received = folder.path.appending("received")
        try Files.makeFolders(received)
        var options = FormServer.Options()
        options.headers = ["authorization": "Bearer of-the-form"]
        let server = try FormServer("resumable", into: received, options)
        let target = "chunked-form url=\(server.url) preset=resumable"
        let result = try await initialise(target, secret: "of-the-form")
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("no test file was sent: this form has no request to remove a file"))
        #expect(try Files.names(in: received) == [])
        #expect(try content(file).contains("    headers: {Authorization: \"Bearer {secret:token}\"}\n"))
        try Files.remove(file)
        try Files.remove(etc.appending("server.token"))
        let any = try await initialise(target, secret: "of-the-form", ["--test-file", "any"])
        #expect(any.status == .status(0), "\(any.said)")
        #expect(any.said.contains("a test file arrived, and the destination did not remove it"))
        #expect(try Files.names(in: received).contains { $0.display.hasPrefix("sluice-test-") })
    }

    @Test("a folder gets a test file, which is removed")
    func directory() async throws {
        let nas = folder.path.appending("nas")
        try Files.makeFolders(nas)
        let result = try await initialise("directory path=\(nas.display) mount=/")
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("a test file arrived, and was removed again"))
        #expect(try Files.names(in: nas) == [])
        #expect(try content(file).contains("    mount: /\n"))
    }

    @Test(
        "what is wrong with a type and its settings is named",
        arguments: [
            ("s4 bucket=videos", "did you mean `s3`?"), ("s3", "`s3`, which needs `bucket`"),
            ("s3 bucket=videos regoin=x", "did you mean `region`?"), ("s3 bucket", "settings with their values"),
            ("s3 bucket=videos secret_key=geheim", "a secret, which does not stand here"),
            ("s3 bucket=videos bucket=b", "has `bucket` twice"), ("oss bucket=\"videos", "a quote that does not end"),
            ("s3 bucket=videos region=eu-central-1", "needs the id and the key of the account"),
            ("vimeo", "needs a token"),
        ])
    func wrong(target: String, problem: String) async throws {
        let result = try await initialise(target)
        #expect(result.status == .status(64), "\(result.said)")
        #expect(result.said.contains(problem), "\(result.said)")
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test(
        "an access without a key needs no secret, and a mistake that only the type sees is found before anything is written"
    )
    func objections() async throws {
        let role = try await initialise(
            "s3 bucket=videos region=eu-central-1 instance_metadata.kind=instance", ["--offline"])
        #expect(role.status == .status(0), "\(role.said)")
        #expect(try content(file).contains("    instance_metadata: {kind: instance}\n"))
        try Files.remove(file)
        let wrong = try await initialise("oss bucket=videos region=oss-cn-shanghai", secret: "id key", ["--offline"])
        #expect(wrong.status == .status(78))
        #expect(wrong.said.contains("is the plain name, without `oss-` before it"), "\(wrong.said)")
        #expect(try Files.names(in: etc) == [])
    }

    @Test(
        "at a terminal a bucket takes six questions, and its id and key are not shown",
        .enabled(if: Typist.isPossible, "python3 is wanted: scripts/install-deps --tests"))
    func dialogue() async throws {
        let result = try await typist.type(
            [
                ("Which folder has the videos?", "\(videos.display)\n"), ("Where do they go?", "s3\n"),
                ("needs `bucket`", "s3 bucket=videos region=eu-central-1\n"),
                ("the id, a space, and the key", "only-one-word\n"),
                ("the id, a space, and the key", "AKIDEXAMPLE a-typed-key\n"), ("verified?", "\n"),
                ("When may it upload?", "\n"),
            ], ["init", "--config", file.display, "--offline"])
        #expect(result.status == .status(0), "\(result.shown)")
        #expect(!result.shown.contains("a-typed-key") && !result.shown.contains("only-one"))
        #expect(try content(etc.appending("videos.key")).contains("aws_secret_access_key = a-typed-key\n"))
    }
}
