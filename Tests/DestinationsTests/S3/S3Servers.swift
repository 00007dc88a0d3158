import Core
import Credentials
import Digests
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// A bucket at one of the servers, and a destination for it.
final class S3End: RemoteFixture {
    static let part: Int64 = 5 << 20

    let maker: S3Maker
    var folder: FilePath { server.folder }
    var bucket: String { server.bucket }
    let destination: any Destination
    var url: String { server.url }
    let clocks: any Clocks
    let secret: String? = S3Server.secretKey
    let server: S3Server
    private let isVirtual: Bool
    private let transport = Transport()

    /// - Parameters:
    ///   - gateway: A gateway of Ceph, which ends with this.
    ///   - chunk: Size of a part, smaller than a person may set; files up to half of it are sent in one request, and no
    ///     two parts in parallel.
    init(
        _ maker: S3Maker, _ more: [String: SettingValue] = [:], clocks: any Clocks = SystemClocks(),
        isVirtual: Bool = false, gateway: Ceph.Gateway? = nil, chunk: Int64? = nil
    ) async throws {
        self.maker = maker
        self.clocks = clocks
        self.isVirtual = isVirtual
        server = try await S3Server(maker, isVirtual: isVirtual, gateway: gateway)
        var more = more
        if isVirtual { more["addressing"] = .text("virtual") }
        if isVirtual { more["endpoint"] = .text(Self.named(server, maker)) }
        let values = Self.values(server.url, bucket: server.bucket, preset: maker.preset, more)
        let tools = DestinationTools(
            transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in })
        if let chunk {
            var settings = try #require(S3.settings(values))
            settings.preset.smallestPart = 1
            (settings.partSize, settings.singleUpTo, settings.parallel) = (chunk, chunk / 2, 1)
            let keys = S3Keys.Source.words(
                id: .literal(S3Server.id), secret: .literal(S3Server.secretKey), token: nil)
            destination = S3(settings, .kept(keys), tools)
        } else {
            destination = try S3(values, tools)
        }
        try await eventually("\(maker.rawValue) has a bucket", within: .seconds(30), every: .milliseconds(50)) {
            guard maker.makesBuckets else { return try? await self.ask("GET", nil).status }
            return (try? await self.ask("PUT", nil)).flatMap { $0.status == 200 ? 200 : nil }
        }
    }

    /// Starts it and stops it, regardless of the test's result.
    static func open(
        _ maker: S3Maker, _ more: [String: SettingValue] = [:], isVirtual: Bool = false,
        gateway: Ceph.Gateway? = nil, _ body: (S3End) async throws -> Void
    ) async throws {
        let end = try await S3End(maker, more, isVirtual: isVirtual, gateway: gateway)
        do { try await body(end) } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }

    /// With a name instead of the address, so that a bucket's name can precede it. Names below `localhost` are this
    /// machine (RFC 6761).
    private static func named(_ server: S3Server, _ maker: S3Maker) -> String {
        "http://\(maker == .ceph ? Ceph.host : "localhost"):\(server.port)"
    }

    static func values(
        _ url: String, bucket: String = "bucket", preset: String = "other", _ more: [String: SettingValue] = [:]
    ) -> [String: SettingValue] {
        [
            "endpoint": .text(url), "bucket": .text(bucket), "preset": .text(preset),
            "access_key": .secret(.literal(S3Server.id)), "secret_key": .secret(.literal(S3Server.secretKey)),
            "part_size": .bytes(part), "single_up_to": .bytes(1 << 20),
        ].merging(more) { $1 }
    }

    /// Another destination at the same server, without anything that this one has learned. A key with `nil` is not set.
    func destination(
        _ more: [String: SettingValue?] = [:], clocks: any Clocks = SystemClocks()
    ) throws -> any Destination {
        var values = Self.values(url, bucket: bucket, preset: maker.preset)
        for (key, value) in more { values[key] = value }
        return try S3(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
    }

    /// One attempt as a new process.
    func sendAnew(
        _ staged: StagedUpload, _ recorder: RecordingReporter, _ more: [String: SettingValue?] = [:]
    ) async throws -> RemoteObject {
        var order = staged.order
        order.checkpoint = recorder.last
        recorder.beginAttempt()
        return try await destination(more).upload(order, reporter: recorder)
    }

    var api: S3API {
        get throws { try #require(destination as? S3).api }
    }

    /// A signed request by the test itself.
    func ask(
        _ method: String, _ key: FilePath?, _ query: [(name: String, value: String)] = [], _ body: [UInt8] = []
    ) async throws -> Response {
        let host = isVirtual ? "\(bucket).\(Self.named(server, maker).dropFirst(7))" : String(url.dropFirst(7))
        let path = (isVirtual ? "/" : "/\(bucket)/") + (key.map { S3Message.path(of: $0) } ?? "")
        let message = S3Message(
            method: method, host: host, path: path, query: query,
            headers: body.isEmpty ? [] : [("Content-MD5", base64(Hasher.digest(.md5, of: body)))],
            payload: hexadecimal(Hasher.digest(.sha256, of: body)))
        let headers = S3Signature(
            key: S3Key(id: S3Server.id, secret: S3Server.secretKey), region: "us-east-1"
        ).headers(of: message, at: SystemClocks().wall())
        let suffix = message.codedQuery.isEmpty ? "" : "?\(message.codedQuery)"
        return try await transport.send(
            Request(
                method, "http://\(host)\(path)\(suffix)", headers: headers,
                body: body.isEmpty ? .none : .bytes(body), answerLimit: 64 << 20))
    }

    /// Ends an upload without the destination's knowledge.
    func abort(_ recorder: RecordingReporter, _ key: FilePath = "front/clip.mp4") async throws {
        let upload = try #require(recorder.last?["upload"])
        let status = try await ask("DELETE", key, [("uploadId", upload)]).status
        try #require(status == 204 || status == 200)
    }

    func loseParts() throws -> Int { try server.loseParts(ofSize: Self.part) }

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

    var objects: [FilePath: [UInt8]] {
        get async throws {
            var found: [FilePath: [UInt8]] = [:]
            for key in try await keys().compactMap({ FilePath(display: $0) }) { found[key] = try await content(key) }
            return found
        }
    }
    var remains: [FilePath] { get async throws { try await api.uploads(beginningWith: "").map(\.key) } }
    func keeps(_ name: FilePath) -> Bool { maker.keeps(place(of: name)) }
    /// Keys are text.
    func place(of name: FilePath) -> FilePath { name.text == nil ? FilePath(name.display) : name }

    func goAway() async throws { server.stop() }

    func close() async throws {
        try await goAway()
        await transport.stop()
    }
}
