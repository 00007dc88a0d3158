import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// A bucket at one of them, and a destination for it.
final class S3End: OtherEnd {
    static let part: Int64 = 5 << 20

    let maker: S3Maker
    var folder: FilePath { server.bucket }
    let destination: any Destination
    var url: String { server.url }
    let clocks: any Clocks
    let secret: String? = S3Server.secretKey
    private let server: S3Server
    private let transport = Transport()

    init(
        _ maker: S3Maker, _ more: [String: SettingValue] = [:], clocks: any Clocks = SystemClocks()
    ) async throws {
        self.maker = maker
        self.clocks = clocks
        server = try await S3Server(maker)
        destination = try S3(
            Self.values(server.url, more),
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
        try await eventually("\(maker.rawValue) has a bucket", within: .seconds(30), every: .milliseconds(50)) {
            guard maker != .rclone else { return try? await self.ask("GET", nil).status }
            return (try? await self.ask("PUT", nil)).flatMap { $0.status == 200 ? 200 : nil }
        }
    }

    static func values(_ url: String, _ more: [String: SettingValue] = [:]) -> [String: SettingValue] {
        [
            "endpoint": .text(url), "bucket": .text("bucket"), "access_key": .secret(.literal(S3Server.id)),
            "secret_key": .secret(.literal(S3Server.secretKey)), "part_size": .bytes(part),
            "single_up_to": .bytes(1 << 20),
        ].merging(more) { $1 }
    }

    /// Another destination at the same server.
    func destination(_ more: [String: SettingValue], clocks: any Clocks = SystemClocks()) throws -> any Destination {
        try S3(
            Self.values(url, more),
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
    }

    var api: S3API {
        get throws { try #require(destination as? S3).api }
    }

    /// A signed request of the test's own.
    func ask(_ method: String, _ key: FilePath?, _ query: [(name: String, value: String)] = []) async throws -> Response
    {
        let path = "/bucket" + (key.map { "/" + S3Message.path(of: $0) } ?? "")
        let message = S3Message(
            method: method, host: String(url.dropFirst(7)), path: path, query: query, payload: S3Message.emptyPayload)
        let headers = S3Signature(
            key: S3Key(id: S3Server.id, secret: S3Server.secretKey), region: "us-east-1"
        ).headers(of: message, at: SystemClocks().wall())
        let suffix = message.codedQuery.isEmpty ? "" : "?\(message.codedQuery)"
        return try await transport.send(
            Request(method, url + path + suffix, headers: headers, answerLimit: 64 << 20))
    }

    func content(_ key: FilePath) async throws -> [UInt8]? {
        let response = try await ask("GET", key)
        return response.status == 200 ? response.body : nil
    }

    /// All keys of the bucket.
    func keys() async throws -> Set<String> {
        var (found, mark): (Set<String>, String?) = ([], nil)
        repeat {
            let page = try #require(try await destination.list(after: mark))
            found.formUnion(page.items.map(\.id))
            mark = page.next
        } while mark != nil
        return found
    }

    func unfinished() async throws -> Int {
        guard maker.hasUploadList else { return 0 }
        return try await api.uploads(beginningWith: "").count
    }

    func goAway() async throws { server.stop() }

    func close() async throws {
        try await goAway()
        await transport.stop()
    }
}
