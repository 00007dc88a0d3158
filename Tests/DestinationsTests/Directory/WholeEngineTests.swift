import Core
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// A remote that stores names, and damages a given number of files.
private final class DamagingPlace: WholeDialect, RemoteDirectory {
    struct State {
        var damages: Int
        var starts: [Int64] = []
        var names: [FilePath] = []
    }
    let state: Mutex<State>

    init(damages: Int) { state = Mutex(State(damages: damages)) }

    func openFolder(_ name: FilePath, isMaking: Bool) async throws -> (any RemoteDirectory)? { self }
    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        Failure(kind, code: code, message: message, at: WallTime(milliseconds: 0), retryable: retryable)
    }
    func status(at name: FilePath, for file: StagedFile) async throws -> RemoteNameState {
        state.withLock { $0.names.contains(name) } ? .other(isFile: true) : .free
    }
    func length(of part: FilePath) async throws -> Int64? { .max / 2 }
    func send(
        from offset: Int64, of order: UploadOrder, to part: FilePath, _ spent: @escaping Spent,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Int64 {
        state.withLock { $0.starts.append(offset) }
        return order.file.size
    }
    func holds(_ file: StagedFile, as part: FilePath) async throws -> Bool {
        state.withLock { state in
            state.damages -= 1
            return state.damages < 0
        }
    }
    func rename(_ part: FilePath, to name: FilePath, isReplacing: Bool) async throws -> Bool {
        state.withLock { $0.names.append(name) }
        return true
    }
    func sendBundle(
        _ pieces: [BundledFile], isWanted: @escaping @Sendable (String) -> Bool,
        _ spent: @escaping @Sendable (String, Int64) -> Void
    ) async throws -> Set<String> { [] }
    func makeDurable(_ name: FilePath) async throws {}
    func remove(_ part: FilePath) async throws {}
    func address(of name: FilePath) -> String { name.display }
    var warnings: [String] { [] }
}

@Suite("WholeEngine")
struct WholeEngineTests {
    private func upload(_ place: DamagingPlace, _ recorder: RecordingReporter) async throws -> RemoteObject {
        let staged = try StagedUpload(10)
        return try await WholeEngine(dialect: place, taken: .suffix).upload(staged.order, recorder)
    }

    @Test("a file that reads back with other content is sent again from the start, once")
    func once() async throws {
        let place = DamagingPlace(damages: 1)
        let recorder = RecordingReporter()
        #expect(try await upload(place, recorder).verifiedBy == "digest")
        #expect(place.state.withLock { $0.starts } == [0, 0])
        // Each file was read back, which costs as much as sending it.
        #expect(recorder.readBack.withLock { $0 } == 20)
    }

    @Test("a second wrong read in a row holds the destination, the file gets no name, and the next attempt starts at 0")
    func twice() async throws {
        let place = DamagingPlace(damages: 2)
        let recorder = RecordingReporter()
        let error = await #expect(throws: UploadError.self) { try await self.upload(place, recorder) }
        #expect(error?.failure.code == .readBackDiffers)
        #expect(error?.remedy == .holdDestination(after: .seconds(60)))
        #expect(place.state.withLock { $0.names } == [])
        #expect(recorder.last?["offset"] == "0")
    }
}
