import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Transport

@testable import Destinations

/// A bucket that behaves as a test requires, and a destination for it.
final class S3Scene: RemoteFixture {
    /// Size of a file of three parts.
    static let size = (10 << 20) + 1

    let emulator: S3Emulator
    let destination: any Destination
    let clocks: ManualClocks
    private let temporary = TemporaryFolder()
    var folder: FilePath { temporary.path }
    let secret: String? = "the-secret-of-the-test"
    let keyFile: FilePath
    private let lines = Lines()
    /// The lines of the log.
    var logged: [String] { lines.all.withLock { $0 } }

    private final class Lines: Sendable { let all = Mutex<[String]>([]) }

    /// - Parameters:
    ///   - emulator: An emulator to use in place of a new one.
    ///   - left: Keys that are not set.
    init(
        _ more: [String: SettingValue] = [:], at emulator: S3Emulator? = nil, without left: Set<String> = []
    ) throws {
        let emulator = try emulator ?? S3Emulator()
        self.emulator = emulator
        clocks = ManualClocks(wall: SystemClocks().wall())
        keyFile = try temporary.write("keys", Array(Self.document("token-1").utf8))
        let values: [String: SettingValue] = [
            "endpoint": .text(emulator.url), "bucket": .text("bucket"), "credentials": .secret(.file(keyFile)),
            "part_size": .bytes(5 << 20), "single_up_to": .bytes(1000), "parallel": .whole(1),
        ]
        destination = try S3(
            values.filter { !left.contains($0.key) }.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: clocks, name: "archive",
                log: { [lines] line in lines.all.withLock { $0.append(line) } }))
    }

    static func document(_ token: String) -> String {
        """
        # of the test
        [other]
        aws_access_key_id = X
        [default]
        aws_access_key_id = AKTEST
        aws_secret_access_key = the-secret-of-the-test
        aws_session_token = \(token)

        """
    }

    func goAway() async throws { emulator.stop() }
    func close() async throws { emulator.stop() }

    /// Whether it has exactly this file, complete, and nothing unfinished.
    func holds(_ staged: StagedUpload, as key: String = "front/clip.mp4") -> Bool {
        emulator.objects.keys.sorted() == [key] && emulator.objects[key]?.bytes == staged.content
            && emulator.uploads.isEmpty
    }
}

extension RemoteFixture {
    /// Attempts until it is complete or refused; remains are removed as by the daemon.
    @discardableResult
    func bring(_ staged: StagedUpload, _ recorder: RecordingReporter = RecordingReporter(), attempts: Int = 6)
        async throws -> RemoteObject
    {
        var last: (any Error)?
        for _ in 0..<attempts {
            do {
                let object = try await staged.send(to: self, recorder)
                for checkpoint in recorder.left { _ = try await destination.discard(checkpoint) }
                return object
            } catch let error as UploadError {
                if error.remedy == .failUpload { throw error }
                last = error
            }
        }
        throw last ?? StagedUpload.Unexpected(what: "no attempt")
    }
}
