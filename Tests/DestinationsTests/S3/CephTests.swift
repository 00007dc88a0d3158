import Core
import Credentials
import Digests
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// Features that Ceph has like Amazon, and that the small servers lack: temporary keys, and the removal of unfinished
/// uploads.
@Suite(
    "s3 with temporary keys and life-cycle rules",
    .enabled(if: Ceph.isWanted, "60 MB of Ceph are downloaded for it: make test-long"),
    .timeLimit(.minutes(Patience.minutes(5))))
struct CephTests {
    private static let part = Int(S3End.part)

    /// A bucket, a role whose keys may use it, and a gateway whose clock can be set.
    private final class Scene: Sendable {
        let end: S3End
        let gateway: Ceph.Gateway
        let keyFile: FilePath
        private let role: String
        private let temporary = TemporaryFolder()
        private let transport = Transport()
        private let clocks: any Clocks

        struct Key: Hashable {
            var (id, secret, token, expiration) = ("", "", "", "")
        }

        init(clocks: any Clocks = SystemClocks()) async throws {
            self.clocks = clocks
            end = try await S3End(.ceph)
            let ceph = try await Ceph.shared.value
            gateway = try await ceph.gateway(hasOwnClock: true)
            role = "of-\(end.bucket)"
            keyFile = temporary.path.appending("keys")
            func policy(_ statement: String) -> String { #"{"Version":"2012-10-17","Statement":[\#(statement)]}"# }
            let trust =
                #"{"Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/\#(Ceph.user)"]},"Action":["sts:AssumeRole"]}"#
            _ = try await ceph.admin([
                "role", "create", "--role-name=\(role)", "--path=/", "--assume-role-policy-doc=\(policy(trust))",
            ])
            _ = try await ceph.admin([
                "role-policy", "put", "--role-name=\(role)", "--policy-name=all",
                "--policy-doc=\(policy(#"{"Effect":"Allow","Action":["s3:*"],"Resource":"arn:aws:s3:::*"}"#))",
            ])
        }

        func close() async throws {
            gateway.stop()
            await transport.stop()
            try await end.close()
        }

        /// A key for a quarter of an hour, the shortest time, from a gateway whose clock is this far ahead.
        func lend(ahead hours: Int = 0) async throws -> Key {
            let body = Array(
                ("Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A%3Arole%2F\(role)"
                    + "&RoleSessionName=test&DurationSeconds=900").utf8)
            let message = S3Message(
                method: "POST", host: "127.0.0.1:\(gateway.port)", path: "/",
                headers: [("Content-Type", "application/x-www-form-urlencoded")],
                payload: hexadecimal(Hasher.digest(.sha256, of: body)))
            let headers = S3Signature(
                key: S3Key(id: S3Server.id, secret: S3Server.secretKey), region: "us-east-1"
            ).headers(of: message, at: SystemClocks().wall().advanced(by: .seconds(3600 * hours)))
            let answer = try await transport.send(
                Request("POST", gateway.url + "/", headers: headers, body: .bytes(body), answerLimit: 1 << 20))
            let given = try #require(
                XMLValue.read(answer.body)?["AssumeRoleResult"]?["Credentials"],
                "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
            func word(_ name: String) throws -> String { try #require(given[name]?.text) }
            return Key(
                id: try word("AccessKeyId"), secret: try word("SecretAccessKey"), token: try word("SessionToken"),
                expiration: try word("Expiration"))
        }

        func keep(_ key: Key, telling end: Bool) throws {
            let document =
                end
                ? #"{"Version":1,"AccessKeyId":"\#(key.id)","SecretAccessKey":"\#(key.secret)","#
                    + #""SessionToken":"\#(key.token)","Expiration":"\#(key.expiration)"}"#
                : """
                [default]
                aws_access_key_id = \(key.id)
                aws_secret_access_key = \(key.secret)
                aws_session_token = \(key.token)

                """
            try Files.replace(keyFile, with: Array(document.utf8))
        }

        /// A destination at the gateway, with the file that ``keep(_:telling:)`` has written.
        func destination(_ source: SecretSource? = nil) throws -> any Destination {
            try end.destination(
                [
                    "endpoint": .text(gateway.url), "credentials": .secret(source ?? .file(keyFile)),
                    "access_key": nil, "secret_key": nil, "parallel": .whole(1),
                ], clocks: clocks)
        }

        /// A destination with these three values.
        func destination(_ key: Key) throws -> any Destination {
            try end.destination([
                "access_key": .secret(.literal(key.id)), "secret_key": .secret(.literal(key.secret)),
                "session_token": key.token.isEmpty ? nil : .secret(.literal(key.token)), "parallel": .whole(1),
            ])
        }
    }

    private func open(
        clocks: any Clocks = SystemClocks(), _ body: (Scene) async throws -> Void
    ) async throws {
        let scene = try await Scene(clocks: clocks)
        do { try await body(scene) } catch {
            try await scene.close()
            throw error
        }
        try await scene.close()
    }

    private func attempt(
        _ staged: StagedUpload, _ destination: any Destination, _ recorder: RecordingReporter,
        _ reporter: (any UploadReporter)? = nil
    ) async throws -> RemoteObject {
        var order = staged.order
        order.checkpoint = recorder.last
        recorder.beginAttempt()
        return try await destination.upload(order, reporter: reporter ?? recorder)
    }

    /// The first part of three is there.
    private func begun(_ staged: StagedUpload, _ destination: any Destination) async throws -> RecordingReporter {
        let recorder = RecordingReporter()
        recorder.stop { $0.accepted >= Self.part }
        do {
            _ = try await Task { try await attempt(staged, destination, recorder) }.value
            Issue.record("the upload ended before it was stopped")
        } catch is CancellationError {}
        recorder.stop { _ in false }
        return recorder
    }

    @Test(
        "a temporary key uploads with its token; without the right one it is refused as a key, and no upload fails")
    func tokens() async throws {
        try await open { scene in
            let key = try await scene.lend()
            let other = try await scene.lend()
            var bad: [Scene.Key] = []
            for token in [
                "", other.token, String(key.token.dropLast(8)) + "AAAAAAA=", String(key.token.prefix(60)), "!",
            ] {
                var wrong = key
                wrong.token = token
                bad.append(wrong)
            }
            for size in [1000, 2 * Self.part + 1] {
                let staged = try StagedUpload(size, name: FilePath("\(size).mp4"))
                for wrong in bad {
                    let destination = try scene.destination(wrong)
                    let error = await #expect(throws: UploadError.self) {
                        _ = try await attempt(staged, destination, RecordingReporter())
                    }
                    #expect(error?.remedy == .authenticate, "\(String(describing: error))")
                    #expect(error?.failure.message.contains(key.secret) == false)
                    if wrong.token.utf8.count > 1 { #expect(error?.failure.message.contains(wrong.token) == false) }
                    #expect(await destination.check().verdict == .failed)
                }
                _ = try await attempt(staged, try scene.destination(key), RecordingReporter())
                let isWhole = try await scene.end.content(FilePath("\(size).mp4")) == staged.content
                #expect(isWhole)
            }
            #expect(try await scene.end.unfinished() == 0)
        }
    }

    @Test("when a key expires during an upload, it waits for the next one and resumes with its parts")
    func ended() async throws {
        try await open { scene in
            let first = try await scene.lend()
            try scene.keep(first, telling: false)
            let destination = try scene.destination()
            let staged = try StagedUpload(2 * Self.part + 1)
            let recorder = try await begun(staged, destination)
            try scene.gateway.setClock(ahead: 2)
            for _ in 0..<2 {
                let error = await #expect(throws: UploadError.self) {
                    _ = try await attempt(staged, destination, recorder)
                }
                #expect(error?.remedy == .authenticate)
                #expect(error?.failure.message.contains(first.token) == false)
            }
            try scene.keep(try await scene.lend(ahead: 2), telling: false)
            _ = try await attempt(staged, destination, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= Self.part }, "\(recorder.sent)")
            let isWhole = try await scene.end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
            #expect(try await scene.end.unfinished() == 0)
        }
    }

    @Test("a refusal without a body, as for `HEAD`, makes the key be read again too")
    func question() async throws {
        try await open { scene in
            try scene.keep(try await scene.lend(), telling: false)
            let destination = try scene.destination()
            #expect(await destination.check().verdict == .ok, "the key has been read")
            try scene.gateway.setClock(ahead: 2)
            try scene.keep(try await scene.lend(ahead: 2), telling: false)
            // The upload begins with the query whether the name is free.
            let staged = try StagedUpload(Self.part + 1)
            _ = try await attempt(staged, destination, RecordingReporter())
            let isWhole = try await scene.end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        }
    }

    @Test("a key from a command is requested again during an attempt, which continues")
    func command() async throws {
        try await open { scene in
            try scene.keep(try await scene.lend(), telling: true)
            let destination = try scene.destination(.command(["/bin/cat", scene.keyFile.display]))
            let staged = try StagedUpload(2 * Self.part + 1)
            let recorder = RecordingReporter()
            let reporter = ActingReporter(recorder) {
                try scene.gateway.setClock(ahead: 2)
                try scene.keep(try await scene.lend(ahead: 2), telling: true)
            }
            let object = try await attempt(staged, destination, recorder, reporter)
            #expect(reporter.hasHappened && object.verifiedBy == "parts")
            let isWhole = try await scene.end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
            #expect(try await scene.end.unfinished() == 0)
        }
    }

    @Test("a key with an expiry time is read again five minutes before")
    func inTime() async throws {
        let clocks = ManualClocks(wall: SystemClocks().wall())
        try await open(clocks: clocks) { scene in
            try scene.keep(try await scene.lend(), telling: true)
            let destination = try scene.destination()
            #expect(await destination.check().verdict == .ok)
            // The key in the file would be refused now.
            try Files.replace(scene.keyFile, with: Array("{}".utf8))
            clocks.advance(by: .seconds(9 * 60))
            #expect(await destination.check().verdict == .ok, "the key is not read again yet")
            clocks.advance(by: .seconds(2 * 60))
            #expect(await destination.check().verdict == .failed, "the key has been read again")
            try scene.keep(try await scene.lend(), telling: true)
            #expect(await destination.check().verdict == .ok)
        }
    }

    /// Unfinished uploads are removed after a day, which is seconds here.
    private static let cleaning = Array(
        ("<LifecycleConfiguration><Rule><ID>clean</ID><Prefix></Prefix><Status>Enabled</Status>"
            + "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>"
            + "</AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>").utf8)

    @Test(
        "an upload removed by a rule of the bucket starts again, and is there complete and once",
        arguments: [true, false])
    func cleared(_ isMeanwhile: Bool) async throws {
        try await S3End.open(.ceph, ["parallel": .whole(1)]) { end in
            let staged = try StagedUpload(2 * Self.part + 1)
            let clean: @Sendable () async throws -> Void = {
                try #require(try await end.ask("PUT", nil, [("lifecycle", "")], Self.cleaning).status == 200)
                try await eventually(
                    "the bucket has removed the parts by its rule", within: .seconds(60), every: .milliseconds(100)
                ) {
                    try await end.unfinished() == 0
                }
                // Otherwise the rule would remove the next upload too.
                try #require(try await end.ask("DELETE", nil, [("lifecycle", "")]).status == 204)
            }
            let recorder = isMeanwhile ? RecordingReporter() : try await begun(staged, end.destination)
            if !isMeanwhile { try await clean() }
            let reporter = isMeanwhile ? ActingReporter(recorder, clean) : nil
            do { _ = try await attempt(staged, end.destination, recorder, reporter) } catch let error as UploadError {
                guard case .retry = error.remedy else { throw error }
                _ = try await attempt(staged, end.destination, recorder)
            }
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
            #expect(try await end.keys() == ["front/clip.mp4"])
            #expect(try await end.unfinished() == 0)
        }
    }
}
