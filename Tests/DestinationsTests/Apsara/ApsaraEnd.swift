import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// ApsaraVideo VOD and its storage: an emulator that checks each signature with the vendor's own packages.
final class ApsaraEnd: RemoteFixture {
    /// The party that may call VOD.
    enum Authorization: String, CaseIterable { case key, service, sts }

    let server: OSSServer
    let destination: any Destination
    let secret: String? = OSSServer.secretKey
    let way: Authorization
    let transport = Transport()
    private let clocks: any Clocks
    private let chunk: Int64?
    var folder: FilePath { server.folder.path }

    /// - Parameter chunk: Size of a part, smaller than a person may set; files up to half of it are sent in one
    ///   request, and no two parts in parallel.
    init(
        _ way: Authorization, _ more: [String: SettingValue?] = [:], chunk: Int64? = nil,
        clocks: any Clocks = SystemClocks()
    ) async throws {
        server = try await OSSServer()
        (self.way, self.clocks, self.chunk) = (way, clocks, chunk)
        if chunk != nil { try await server.control("settings", "{\"smallest_part\": 1}") }
        let values = Self.values(server.url, way, more)
        destination = try Self.make(values, chunk, Self.tools(transport, clocks))
    }

    private static func make(
        _ values: [String: SettingValue], _ chunk: Int64?, _ tools: DestinationTools
    ) throws -> any Destination {
        var destination = try Apsara(values, tools)
        if let chunk {
            var bucket = destination.settings.bucket
            bucket.preset.smallestPart = 1
            (bucket.partSize, bucket.singleUpTo, bucket.parallel) = (chunk, chunk / 2, 1)
            destination.settings.bucket = bucket
        }
        return destination
    }

    static func values(
        _ url: String, _ way: Authorization, _ more: [String: SettingValue?] = [:]
    ) -> [String: SettingValue] {
        var values: [String: SettingValue] = ["part_size": .bytes(128 << 10), "single_up_to": .bytes(100 << 10)]
        switch way {
        case .key:
            values["endpoint"] = .text(url)
            values["access_key"] = .secret(.literal(OSSServer.id))
            values["secret_key"] = .secret(.literal(OSSServer.secretKey))
        case .service: values["authorisation.url"] = .text("\(url)/_auth")
        case .sts:
            values["endpoint"] = .text(url)
            values["sts.url"] = .text("\(url)/_sts")
        }
        for (key, value) in more { values[key] = value }
        return values
    }

    private static func tools(_ transport: Transport, _ clocks: any Clocks) -> DestinationTools {
        DestinationTools(
            transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in })
    }

    static func open(
        _ way: Authorization = .key, _ more: [String: SettingValue?] = [:], clocks: any Clocks = SystemClocks(),
        _ body: (ApsaraEnd) async throws -> Void
    ) async throws {
        let end = try await ApsaraEnd(way, more, clocks: clocks)
        do { try await body(end) } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }

    /// As after a restart: another destination at the same server, without anything that this one has learned.
    func again(_ more: [String: SettingValue?] = [:]) throws -> any Destination {
        try Self.make(Self.values(server.url, way, more), chunk, Self.tools(transport, clocks))
    }

    /// By the names that VOD was given; the second object with a name has a number.
    var objects: [FilePath: [UInt8]] {
        get async throws {
            var found: [FilePath: [UInt8]] = [:]
            let stored = try await server.objects()
            for medium in try await media() {
                guard let object = stored[medium.key] else { continue }
                var name = FilePath(medium.file)
                var number = 2
                while found[name] != nil {
                    name = FilePath(medium.file).numbered(number)
                    number += 1
                }
                found[name] = try Files.read(object.path, limit: 1 << 30)
            }
            return found
        }
    }

    struct Medium: Sendable {
        var id: String
        var file: String
        /// With the bucket, as the storage lists it.
        var key: String
        var refreshes: Int64
        /// Requests for a new credential for a complete medium, which would overwrite it.
        var lateRefreshes: Int64
        var said: [String: String]
    }

    /// In the order of their creation.
    func media() async throws -> [Medium] {
        guard case .object(let fields)? = JSONValue.read(Array(try await server.control("videos").utf8)) else {
            return []
        }
        return fields.compactMap { id, json -> (Int64, Medium)? in
            guard let bucket = json["bucket"]?.string, let key = json["key"]?.string,
                let number = json["number"]?.whole
            else { return nil }
            var said: [String: String] = [:]
            if case .object(let given)? = json["given"] { said = given.compactMapValues(\.text) }
            let medium = Medium(
                id: id, file: json["file"]?.string ?? said["OriginalFileName"] ?? "", key: "\(bucket)/\(key)",
                refreshes: json["refreshes"]?.whole ?? 0, lateRefreshes: json["refreshes_after_upload"]?.whole ?? 0,
                said: said)
            return (number, medium)
        }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    var remains: [FilePath] { get async throws { try await server.unfinished().map { FilePath($0) } } }
    var keepsEmpty: Bool { false }
    func keeps(_ name: FilePath) -> Bool { ApsaraMediaKind.of(name) != nil }
    func place(of name: FilePath) -> FilePath {
        let shown = name.bytes.contains { $0 < 0x20 } ? name.display : name.text ?? name.display
        return FilePath(shown.replacing("\\", with: "_"))
    }
    func goAway() async throws { server.stop() }
    func close() async throws {
        server.stop()
        await transport.stop()
    }
}

extension ApsaraEnd {
    /// The numbers of the accepted parts, in order; a part that was accepted twice is listed twice.
    func partsTaken() async throws -> [Int64] {
        let record = JSONValue.read(Array(try await server.control("record").utf8))?.items ?? []
        return record.filter { $0["operation"]?.string == "UploadPart" && $0["status"]?.whole == 200 }
            .compactMap { $0["part"]?.whole }.sorted()
    }

    /// The values of a header in requests of this operation.
    func headers(_ name: String, of operation: String) async throws -> [String] {
        let record = JSONValue.read(Array(try await server.control("record").utf8))?.items ?? []
        return record.filter { $0["operation"]?.string == operation }.compactMap { $0["headers"]?[name]?.string }
    }
}
