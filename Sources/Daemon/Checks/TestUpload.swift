package import API
package import Config
internal import Core
internal import Destinations
internal import Linux
internal import Synchronization
internal import Transport

/// Sends one small file to a destination, and removes it there: for `sluice init` and `sluice check --test-file`, which
/// show a person that files arrive before the first one counts.
package struct TestUpload: Sendable {
    /// Its content and digest. A service for videos takes nothing but a video.
    package struct File: Sendable {
        let ending: String
        let mediaType: String
        let content: [UInt8]
        let sha256: [UInt8]

        package init(ending: String, mediaType: String, content: [UInt8], sha256: [UInt8]) {
            (self.ending, self.mediaType, self.content, self.sha256) = (ending, mediaType, content, sha256)
        }
    }

    let file: File
    /// Whether it is sent also where it cannot be removed again.
    let mayStay: Bool
    /// Whether the finding says how fast it was.
    let isMeasured: Bool

    package init(_ file: File, mayStay: Bool, isMeasured: Bool) {
        (self.file, self.mayStay, self.isMeasured) = (file, mayStay, isMeasured)
    }

    private enum Outcome: Hashable, Sendable {
        case removed(after: Duration)
        /// The destination has the file, and did not remove it.
        case left(name: String, after: Duration)
        /// Nothing was sent: the reason.
        case notSent(String)
        case failed(String)
    }

    /// Obeys `policy`: where it forbids the transfer now, nothing is sent.
    package func finding(_ settings: Settings, to destination: String) async -> CheckFinding {
        let result =
            switch await run(settings, to: destination) {
            case .removed(let time): CheckResult(.ok, "a test file arrived, and was removed again" + speed(time))
            case .left(let name, let time):
                CheckResult(
                    .warning,
                    "a test file arrived, and the destination did not remove it: remove \(printable(name)) there"
                        + speed(time))
            case .notSent(let reason): CheckResult(.ok, "no test file was sent: \(reason)")
            case .failed(let reason): CheckResult(.failed, "the test file did not arrive: \(reason)")
            }
        return CheckFinding(about: Self.about, name: destination, result)
    }

    package static let about = "test"

    /// With every request that the file needs, also those that verify it.
    private func speed(_ time: Duration) -> String {
        guard isMeasured else { return "" }
        let (size, milliseconds) = (Int64(file.content.count), max(1, time.inMilliseconds))
        return "; \(shownBytes(size)) took \(milliseconds / 1000).\(padded(Int(milliseconds % 1000), 3)) s "
            + "(\(shownBytes(size * 1000 / milliseconds))/s)"
    }

    private func run(_ settings: Settings, to destination: String) async -> Outcome {
        let transport = Transport()
        let destinations = DestinationChecks(settings, transport)
        let outcome: Outcome
        switch destinations.all.first(where: { $0.name == destination })?.destination {
        case nil: outcome = .failed("there is no such destination")
        case .failure(let unusable): outcome = .failed(unusable.result.detail)
        case .success(let made):
            let report = await StandaloneNetworkReport.make(settings, destinations.sites)
            let sender = StandaloneRequestSender(settings, report)
            switch await sender.perform(destination, .policy, { await send(to: made, context: $0) }) {
            case .success(let answer): outcome = answer.answer
            case .failure(let held): outcome = .notSent("\(held.hold.kind.rawValue): \(held.hold.text)")
            }
        }
        await transport.stop()
        return outcome
    }

    private func send(to destination: any Destination, context: RequestContext) async -> Outcome {
        let name = "sluice-test-\(hexadecimal(Random.bytes(4))).\(file.ending)"
        do {
            let place = try write()
            // The name in the folder is gone when this ends, however it ends.
            defer { try? Files.removeIfPresent(place) }
            let order = UploadOrder(
                id: hexadecimal(Random.bytes(16)), generation: 1,
                file: StagedFile(path: place, size: Int64(file.content.count), sha256: file.sha256),
                name: FilePath(name), mediaType: file.mediaType,
                modified: SystemClocks().wall().milliseconds * 1_000_000, metadata: [:], checkpoint: nil)
            if !mayStay, let obstacle = await destination.obstacleToRemoving(test: order, context: context) {
                return .notSent("\(obstacle); `--test-file any` sends it nevertheless")
            }
            let reporter = TestReporter()
            let start = ContinuousClock.now
            do {
                _ = try await destination.upload(order, reporter: reporter, context: context)
            } catch {
                var rest = reporter.checkpoint
                rest.isFinished = false
                // The failure is what the person has to know; an unfinished upload expires at the server.
                _ = try? await destination.remove(test: order, rest, context: context)
                return .failed(Self.text(of: error))
            }
            let time = start.duration(to: .now)
            var finished = reporter.checkpoint
            finished.isFinished = true
            do {
                let isGone = try await destination.remove(test: order, finished, context: context)
                return isGone ? .removed(after: time) : .left(name: name, after: time)
            } catch { return .left(name: name, after: time) }
        } catch { return .failed(Self.text(of: error)) }
    }

    private static func text(of error: any Error) -> String {
        (error as? UploadError)?.checkDescription() ?? redacted(printable("\(error)"))
    }

    private func write() throws(SystemError) -> FilePath {
        let path = FilePath("/tmp").appending(FilePath("sluice-test-\(hexadecimal(Random.bytes(8)))"))
        let descriptor = try Descriptor.open(path, for: .creating)
        try descriptor.write(file.content, named: path)
        try descriptor.close(named: path)
        return path
    }
}

/// Keeps the last checkpoint in memory, since nothing continues a test.
private final class TestReporter: UploadReporter {
    private let kept = Mutex(Checkpoint())

    var checkpoint: Checkpoint { kept.withLock { $0 } }
    var shouldPause: Bool { false }

    func record(_ checkpoint: Checkpoint) async throws { kept.withLock { $0 = checkpoint } }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws { kept.withLock { $0 = checkpoint } }
    func parts() async throws -> [AcknowledgedPart] { [] }
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {}
    func companions() async throws -> [Companion] { [] }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        kept.withLock { $0 = checkpoint }
    }
    func recordName(_ id: String, at url: String?) async throws {}
    func credential(_ renewal: CredentialRenewal) async throws {}
    func sending(_ offset: Int64) {}
    func spent(_ bytes: Int64) {}
    func entered(_ phase: UploadPhase) {}
}
