import Core
import Credentials
import Linux
import TestKit
import Transport

@testable import Destinations

/// A server with one preset, a destination for it, and stagedUploads to send.
final class FormScene: RemoteFixture {
    let destination: any Destination
    let server: FormServer
    let secret: String?
    private let temporary = TemporaryFolder()
    private let values: [String: SettingValue]
    private let transport = Transport()

    var folder: FilePath { temporary.path }

    static let block: Int64 = 1000

    init(
        _ preset: String, _ values: [String: SettingValue] = [:], credential: String? = nil,
        _ change: (inout FormServer.Options) -> Void = { _ in }
    ) throws {
        var options = FormServer.Options()
        options.block = Self.block
        options.token = credential ?? ""
        change(&options)
        server = try FormServer(preset, into: temporary.path, options)
        secret = credential
        var all: [String: SettingValue] = [
            "url": .text(server.url), "preset": .text(preset), "block.size": .bytes(Self.block),
        ]
        // This preset's test server joins by itself.
        if preset == "webuploader", !values.keys.contains(where: { $0.hasPrefix("finish.") }) {
            all["finish"] = .text("none")
        }
        if let credential { all["credential"] = .secret(.literal(credential)) }
        self.values = all.merging(values) { $1 }
        destination = try Self.make(self.values, transport)
    }

    private static func make(
        _ values: [String: SettingValue], _ transport: any Transporting
    ) throws -> any Destination {
        try ChunkedForm.kind.make(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in }))
    }

    /// Another destination for the same server.
    func again(_ more: [String: SettingValue]) throws -> any Destination {
        try Self.make(values.merging(more) { $1 }, transport)
    }

    /// The same destination, with a callback for its requests.
    func watched(_ observe: @escaping @Sendable (Request) -> Void) throws -> any Destination {
        try Self.make(values, Watched(transport: transport, observe: observe))
    }

    private struct Watched: Transporting {
        let transport: Transport
        let observe: @Sendable (Request) -> Void

        func send(_ request: Request) async throws(TransportError) -> Response {
            observe(request)
            return try await transport.send(request)
        }
    }

    /// With a request that removes the remains of a cancelled upload.
    static let abort: [String: SettingValue] = [
        "abort.url": .text("/abort"), "abort.fields": .map(["id": .literal("{id}")]),
    ]

    /// With a request that joins the blocks.
    static let finish: [String: SettingValue] = [
        "finish.url": .text("/finish"), "finish.fields": .map(["id": .literal("{id}")]),
        "finish.take": .text("/data/fileUrl"), "success.json": .texts([]),
    ]

    func goAway() async throws { server.stop() }

    func close() async throws {
        server.stop()
        await transport.stop()
    }

    /// The attempts of a daemon, one after the other, without its waits.
    ///
    /// - Returns: The result, and the number of attempts.
    func deliver(
        _ staged: StagedUpload, _ recorder: RecordingReporter = RecordingReporter(), attempts: Int = 5
    ) async throws -> (object: RemoteObject?, errors: [UploadError]) {
        var errors: [UploadError] = []
        for _ in 0..<attempts {
            do { return (try await staged.send(to: self, recorder), errors) } catch let error as UploadError {
                errors.append(error)
                if error.remedy == .failUpload { break }
            }
        }
        return (nil, errors)
    }

    static let presets = [
        "breakpoint", "resumable", "flow", "simple-uploader", "dropzone", "fineuploader", "plupload", "webuploader",
        "blueimp",
    ]
}
