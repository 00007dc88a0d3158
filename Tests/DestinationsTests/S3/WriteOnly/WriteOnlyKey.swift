import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// A bucket with a key that may create objects and unfinished uploads, and query nothing: 403 without a body to `HEAD`,
/// and to each list.
struct WriteOnlyKey {
    static let name = "front/clip.mp4"
    static let second = "front/clip (2).mp4"

    /// - Parameter emulator: A bucket that exists; a new destination knows nothing about it, as after a restart.
    func scene(
        _ more: [String: SettingValue] = [:], preset: String = "minio", at emulator: S3Emulator? = nil
    ) throws -> S3Scene {
        let scene = try S3Scene(["preset": .text(preset)].merging(more) { $1 }, at: emulator)
        restrict(scene.emulator)
        return scene
    }

    private func restrict(_ emulator: S3Emulator) {
        emulator.change { state in
            state.judge = { ["HEAD", "GET"].contains($0.method) ? (403, "AccessDenied", "no") : nil }
        }
    }

    func contentName(_ staged: StagedUpload) -> String {
        "front/clip (\(hexadecimal(Array(staged.order.file.sha256.prefix(8))))).mp4"
    }

    func occupy(_ scene: S3Scene, _ names: [String]) {
        scene.emulator.change { state in
            for name in names { state.objects[name] = S3Emulator.Object(bytes: Array("another file".utf8)) }
        }
    }

    /// Attempts until it is complete; remains that the key may not query are skipped, as by the daemon.
    func finish(_ staged: StagedUpload, at scene: S3Scene, within attempts: Int = 4) async throws -> RemoteObject {
        let recorder = RecordingReporter()
        var object: RemoteObject?
        for _ in 0..<attempts where object == nil {
            do { object = try await staged.send(to: scene, recorder) } catch let error as UploadError {
                #expect(error.remedy != .failUpload, "\(error)")
            }
        }
        for checkpoint in recorder.left {
            do { _ = try await scene.destination.discard(checkpoint) } catch let error {
                #expect(error.failure.code == .removalUnknown && error.isConclusive, "\(error)")
            }
        }
        return try #require(object)
    }

    func isUnharmed(_ scene: S3Scene, _ name: String) -> Bool {
        scene.emulator.objects[name]?.bytes == Array("another file".utf8)
    }
}
