import Core
import Credentials
import Digests
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// A bucket at the OSS emulator, which checks every signature with the vendor's own packages.
final class OSSEnd: RemoteFixture {
    let server: OSSServer
    let destination: any Destination
    let secret: String? = OSSServer.secretKey
    let transport = Transport()
    private let clocks: any Clocks
    var folder: FilePath { server.folder.path }

    /// - Parameter chunk: Size of a part, smaller than a person may set; files up to half of it are sent in one
    ///   request, and no two parts in parallel.
    init(
        _ more: [String: SettingValue?] = [:], chunk: Int64? = nil, clocks: any Clocks = SystemClocks()
    ) async throws {
        server = try await OSSServer()
        self.clocks = clocks
        let values = Self.values(server.url, more)
        if let chunk {
            try await server.control("settings", "{\"smallest_part\": 1}")
            var settings = try #require(OSS.settings(values))
            settings.preset.smallestPart = 1
            (settings.partSize, settings.singleUpTo, settings.parallel) = (chunk, chunk / 2, 1)
            let access = try #require(S3Access(settings.access))
            destination = S3(settings, access, Self.tools(transport, clocks))
        } else {
            destination = try OSS.kind.make(values, Self.tools(transport, clocks))
        }
    }

    static func values(_ url: String, _ more: [String: SettingValue?] = [:]) -> [String: SettingValue] {
        var values: [String: SettingValue] = [
            "endpoint": .text(url), "bucket": .text(OSSServer.bucket), "region": .text(OSSServer.region),
            "addressing": .text("path"), "access_key": .secret(.literal(OSSServer.id)),
            "secret_key": .secret(.literal(OSSServer.secretKey)), "part_size": .bytes(128 << 10),
            "single_up_to": .bytes(100 << 10),
        ]
        for (key, value) in more { values[key] = value }
        return values
    }

    private static func tools(_ transport: any Transporting, _ clocks: any Clocks) -> DestinationTools {
        DestinationTools(
            transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in })
    }

    /// Starts it and stops it, regardless of the test's result.
    static func open(
        _ more: [String: SettingValue?] = [:], clocks: any Clocks = SystemClocks(),
        _ body: (OSSEnd) async throws -> Void
    ) async throws {
        let end = try await OSSEnd(more, clocks: clocks)
        do { try await body(end) } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }

    /// Another destination at the same server, without anything that this one has learned. A key with `nil` is not set.
    func destination(_ more: [String: SettingValue?] = [:]) throws -> any Destination {
        try OSS.kind.make(Self.values(server.url, more), Self.tools(transport, clocks))
    }

    var objects: [FilePath: [UInt8]] {
        get async throws {
            var found: [FilePath: [UInt8]] = [:]
            for (key, object) in try await server.objects() {
                found[FilePath(key)] = try Files.read(object.path, limit: 1 << 30)
            }
            return found
        }
    }
    var remains: [FilePath] { get async throws { try await server.unfinished().map { FilePath($0) } } }
    /// No key may begin with the character with which an invalid text is shown.
    func place(of name: FilePath) -> FilePath { name.text == nil ? FilePath("_\(name.display)") : name }
    func goAway() async throws { server.stop() }
    func close() async throws {
        server.stop()
        await transport.stop()
    }
}
