internal import API
package import Config
internal import Core
internal import Destinations
internal import Linux
internal import Synchronization
internal import Transport

/// Sends one small file to a destination, and removes it there: for `sluice init`, which shows a person that files
/// arrive before the first one counts.
package enum TestUpload {
    package enum Outcome: Hashable, Sendable {
        case removed
        /// The destination has the file, and did not remove it.
        case left(name: String)
        /// Nothing was sent: the reason.
        case notSent(String)
        case failed(String)
    }

    /// Obeys `policy`: where it forbids the transfer now, nothing is sent.
    package static func run(_ settings: Settings, to destination: String) async -> Outcome {
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

    private static func send(to destination: any Destination, context: RequestContext) async -> Outcome {
        guard await destination.removesFinished(context: context) else {
            return .notSent("the destination cannot remove a finished file")
        }
        let name = "sluice-test-\(hexadecimal(Random.bytes(4))).txt"
        do {
            let place = try file()
            // The name in the folder is gone when this ends, however it ends.
            defer { try? Files.removeIfPresent(place) }
            let order = UploadOrder(
                id: hexadecimal(Random.bytes(16)), generation: 1,
                file: StagedFile(
                    path: place, size: Int64(content.count), sha256: bytes(hexadecimal: sha256) ?? []),
                name: FilePath(name), mediaType: "text/plain", modified: SystemClocks().wall().milliseconds * 1_000_000,
                metadata: [:], checkpoint: nil)
            let reporter = TestReporter()
            do {
                _ = try await destination.upload(order, reporter: reporter, context: context)
            } catch {
                var rest = reporter.checkpoint
                rest.isFinished = false
                // The failure is what the person has to know; an unfinished upload expires at the server.
                _ = try? await destination.discard(rest, context: context)
                return .failed(text(of: error))
            }
            var finished = reporter.checkpoint
            finished.isFinished = true
            do {
                return try await destination.discard(finished, context: context) ? .removed : .left(name: name)
            } catch { return .left(name: name) }
        } catch { return .failed(text(of: error)) }
    }

    private static let content = Array("Sluice sent this file to try the destination, and removes it.\n".utf8)
    /// Of the content.
    private static let sha256 = "e3d4cdf17c6ae5bb030a4dc6d6425f336e9963a018a587ed6b716e6e8bf5f20f"

    private static func text(of error: any Error) -> String {
        (error as? UploadError)?.checkDescription() ?? redacted(printable("\(error)"))
    }

    private static func file() throws(SystemError) -> FilePath {
        let path = FilePath("/tmp").appending(FilePath("sluice-test-\(hexadecimal(Random.bytes(8)))"))
        let descriptor = try Descriptor.open(path, for: .creating)
        try descriptor.write(content, named: path)
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
