import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// The emulator, and a destination for it.
final class VimeoEnd: RemoteFixture {
    let server: VimeoServer
    let destination: any Destination
    let clocks: ManualClocks
    let folder: FilePath
    private let temporary = TemporaryFolder()
    let tokenFile: FilePath
    var secret: String? { "vimeo-token-1" }

    static let chunk = 1000

    init(
        _ flow: VimeoFlow = .tus, _ more: [String: SettingValue] = [:], clocks: ManualClocks = ManualClocks(),
        server: VimeoServer? = nil
    ) throws {
        self.server = try server ?? VimeoServer()
        self.clocks = clocks
        folder = temporary.path
        tokenFile = try temporary.write("token", Array("vimeo-token-1\n".utf8))
        var values: [String: SettingValue] = [
            "url": .text(self.server.url), "token": .secret(.file(tokenFile)), "flow": .text(flow.rawValue),
            "chunk_size": .bytes(Int64(Self.chunk)), "allow_origins": .texts([self.server.bytesURL]),
        ]
        values.merge(more) { $1 }
        destination = try Vimeo(
            values,
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
    }

    func goAway() async throws { server.stop() }
    func close() async throws { server.stop() }

    /// Attempts until it is complete or refused; remains are removed like by the daemon.
    @discardableResult
    func bring(_ staged: StagedUpload, _ recorder: RecordingReporter = RecordingReporter(), attempts: Int = 10)
        async throws -> RemoteObject
    {
        var last: (any Error)?
        for _ in 0..<attempts {
            do {
                let object = try await staged.send(to: self, recorder)
                try await sweep(recorder)
                return object
            } catch let error as UploadError {
                if error.remedy == .failUpload { throw error }
                last = error
                // Like the daemon's wait: the requested time has passed.
                pass(.seconds(1000))
            }
        }
        throw last ?? StagedUpload.Unexpected(what: "no attempt")
    }

    /// Advances the time here and at the service.
    func pass(_ time: Duration) {
        clocks.advance(by: time)
        server.change { $0.behaviour.ahead += Int64(time.inSeconds * 1000) }
    }

    func sweep(_ recorder: RecordingReporter) async throws {
        for checkpoint in recorder.left { _ = try await destination.discard(checkpoint) }
    }

    /// The contents that a person sees in the account.
    var contents: [[UInt8]] { server.videos.map(\.bytes) }
}
