import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// A bucket's answers about parts from which it cannot assemble the object.
@Suite("s3: parts refused at completion", .timeLimit(.minutes(Patience.minutes(2))))
struct S3InvalidPartTests {
    private typealias Scene = S3Scene

    private static let size = S3Scene.size

    @Test("at completion, refused parts that the list lacks or has otherwise are sent again")
    func invalidPart() async throws {
        for isOther in [false, true] {
            let scene = try Scene()
            defer { scene.emulator.stop() }
            let (staged, recorder) = (try StagedUpload(Self.size), RecordingReporter())
            let reporter = ActingReporter(recorder) {
                scene.emulator.change { state in
                    for id in state.uploads.keys {
                        if isOther {
                            state.uploads[id]?.parts[1]?.etag = "\"other\""
                        } else {
                            state.uploads[id]?.parts[1] = nil
                        }
                    }
                }
            }
            let object = try await scene.destination.upload(staged.order, reporter: reporter)
            #expect(reporter.hasHappened && object.warnings.isEmpty)
            #expect(scene.holds(staged), "\(scene.emulator.requests)")
            let sent = scene.emulator.requests.filter { $0.hasPrefix("part ") }
            #expect(sent.count == 4, "\(scene.emulator.requests)")
        }
    }

    @Test(
        "parts that are refused repeatedly are sent once more, and then the upload fails with the service's message",
        arguments: ["listed", "agreed", "unlisted"])
    func neverGood(_ list: String) async throws {
        let scene = try Scene(["taken": .text("replace")])
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(Self.size), RecordingReporter())
        let forever = Array(repeating: S3Emulator.Fault.error(400, "InvalidPart"), count: 20)
        scene.emulator.change { state in
            state.faults[.complete] = forever
            if list == "unlisted" {
                state.faults[.parts] = Array(repeating: .error(403, "AccessDenied"), count: 20)
            }
        }
        // The list lacks the second part each time.
        let reporter = ActingReporter(recorder, isOnce: false) {
            guard list == "listed" else { return }
            scene.emulator.change { state in for id in state.uploads.keys { state.uploads[id]?.parts[1] = nil } }
        }
        func next() async -> UploadError? {
            var order = staged.order
            order.checkpoint = recorder.last
            let again = order
            return await #expect(throws: UploadError.self) {
                _ = try await scene.destination.upload(again, reporter: reporter)
            }
        }
        var errors: [UploadError] = []
        while errors.last?.remedy != .failUpload, errors.count < 9, let error = await next() {
            // Without the permission to list parts, a resumed upload waits for that permission.
            if list == "unlisted" { scene.emulator.change { $0.faults[.parts] = nil } }
            errors.append(error)
        }
        #expect(errors.last?.remedy == .failUpload && errors.last?.failure.message.contains("InvalidPart") == true)
        #expect(errors.dropLast().map(\.remedy) == [.pending(after: CompletionRetryLimit.wait)], "\(errors)")
        let requests = scene.emulator.requests
        let parts = requests.filter { $0.hasPrefix("part ") }.count
        #expect(requests.filter { $0.hasPrefix("complete") }.count == 3, "\(requests)")
        #expect(parts == (list == "listed" ? 5 : 6), "\(requests)")
        // A person retries it: another upload begins.
        scene.emulator.change { $0.faults[.complete] = nil }
        var order = staged.order
        order.checkpoint = recorder.last
        order.generation = 2
        _ = try await scene.destination.upload(order, reporter: recorder)
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == 2)
        #expect(scene.emulator.objects["front/clip.mp4"]?.bytes == staged.content)
    }

    @Test("an outdated list is queried again before a part is repeated")
    func lateList() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(Self.size), RecordingReporter())
        scene.emulator.change { $0.faults[.complete] = [.error(400, "InvalidPart")] }
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .pending(after: CompletionRetryLimit.wait))
        _ = try await staged.send(to: scene, recorder)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.filter { $0.hasPrefix("part ") }.count == 3, "\(scene.emulator.requests)")
    }
}
