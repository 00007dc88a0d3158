import Core
import Credentials
import Glibc
import Linux
import Receiver
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

@testable import Destinations

/// The real remote of a destination, with the facts that a test needs.
protocol RemoteFixture: Sendable {
    var destination: any Destination { get }
    /// Below it, exactly the complete files have names that are not hidden.
    var folder: FilePath { get }
    /// A text that must never appear in an error or a checkpoint; `nil` for a destination without one.
    var secret: String? { get }
    /// Paths and contents of the complete files there.
    var objects: [FilePath: [UInt8]] { get async throws }
    /// Remains of unfinished uploads there.
    var remains: [FilePath] { get async throws }
    /// Whether a file with this name is possible there.
    func keeps(_ name: FilePath) -> Bool
    /// Whether an empty file is possible there.
    var keepsEmpty: Bool { get }
    /// A file's path there.
    func place(of name: FilePath) -> FilePath
    /// Makes the remote unreachable for the destination.
    func goAway() async throws
    /// Ends the test.
    func close() async throws
}

/// A destination together with its real remote. A new destination adds a line to `all`.
struct TestedRemote: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let start: @Sendable () async throws -> any RemoteFixture

    /// Bytes between two acknowledgements, for every destination here.
    static let chunk = 1000

    static let all: [TestedRemote] =
        [
            TestedRemote(testDescription: "tus") { try await TusEnd() },
            TestedRemote(testDescription: "directory") { try DirectoryEnd() },
            // The preset whose server has names with folders, and can be queried for its blocks.
            TestedRemote(testDescription: "chunked-form") {
                try FormScene("resumable", FormScene.abort, credential: "a-token-that-nobody-may-see")
            },
            TestedRemote(testDescription: "s3") { try BucketEnd() },
            TestedRemote(testDescription: "s3, signed by a service") { try BucketEnd(isPresigned: true) },
            TestedRemote(testDescription: "oss") { try await OSSEnd(chunk: Int64(chunk)) },
            TestedRemote(testDescription: "apsara-vod") { try await ApsaraEnd(.key, chunk: Int64(chunk)) },
            TestedRemote(testDescription: "apsara-vod, by a service") {
                try await ApsaraEnd(.service, chunk: Int64(chunk))
            },
            TestedRemote(testDescription: "s3 at rclone") { try await S3End(.rclone, chunk: Int64(chunk)) },
        ] + (Ceph.isWanted ? [ceph] : [])

    /// With a gateway of its own, which can be made unreachable.
    private static let ceph = TestedRemote(testDescription: "s3 at Ceph") {
        try await S3End(.ceph, gateway: try await Ceph.shared.value.gateway(), chunk: Int64(chunk))
    }

    /// Starts the remote and stops it, regardless of the test's result.
    func open(_ body: (any RemoteFixture) async throws -> Void) async throws {
        let end = try await start()
        do { try await body(end) } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }
}

extension RemoteFixture {
    func keeps(_ name: FilePath) -> Bool { true }
    var keepsEmpty: Bool { true }
    func place(of name: FilePath) -> FilePath { name }

    var objects: [FilePath: [UInt8]] {
        get throws {
            var found: [FilePath: [UInt8]] = [:]
            for path in try files() where !path.components.contains(where: { $0.bytes.first == UInt8(ascii: ".") }) {
                found[path] = try Files.read(folder.appending(path), limit: 1 << 30)
            }
            return found
        }
    }

    var remains: [FilePath] {
        get throws { try files().filter { $0.display.hasSuffix(".data") || $0.display.hasSuffix(".part") } }
    }

    /// Every file below the folder, hidden ones too.
    private func files() throws -> [FilePath] {
        var found: [FilePath] = []
        var folders: [FilePath] = [""]
        while let next = folders.popLast() {
            for name in try Files.names(in: folder.appending(next)) {
                let path = next.appending(name)
                guard let status = try FileStatus.ifPresent(at: folder.appending(path)) else { continue }
                if status.isDirectory { folders.append(path) } else { found.append(path) }
            }
        }
        return found
    }
}

/// `sluice receive`, in this process.
private final class TusEnd: RemoteFixture {
    let destination: any Destination
    let secret: String? = "a-token-that-nobody-may-see"
    private let temporary = TemporaryFolder()
    private let receiver: Receiver
    private let transport = Transport()
    private let isAway = Mutex(false)

    var folder: FilePath { temporary.path }

    init() async throws {
        receiver = try await Receiver.start(
            into: temporary.path, listen: .tcp(host: "127.0.0.1", port: 0), token: Array((secret ?? "").utf8),
            log: { _ in })
        let values: [String: SettingValue] = [
            "url": .text("http://127.0.0.1:\(receiver.port)/files/"), "token": .secret(.literal(secret ?? "")),
            "chunk_size": .bytes(Int64(TestedRemote.chunk)),
        ]
        destination = try Tus.kind.make(values, tools(transport))
    }

    func goAway() async throws {
        let wasAway = isAway.withLock { isAway in
            defer { isAway = true }
            return isAway
        }
        if wasAway { return }
        await receiver.stop()
    }

    func close() async throws {
        try await goAway()
        await transport.stop()
    }
}

/// A folder.
final class DirectoryEnd: RemoteFixture {
    let destination: any Destination
    let target: DirectoryTarget
    let secret: String? = nil
    private let temporary = TemporaryFolder()

    var folder: FilePath { target.path }

    init(taken: NameConflictRule = .suffix, marker: FilePath? = nil, mount: MountPoint? = nil, mode: UInt32? = nil)
        throws
    {
        var target = DirectoryTarget(
            name: "archive", path: temporary.path.appending("in"), mount: mount, marker: marker, mode: mode,
            clocks: SystemClocks(), disk: SlowDisk(timeout: .seconds(60)))
        target.syncInterval = Int64(TestedRemote.chunk)
        self.target = target
        destination = DirectoryDestination(target, taken: taken)
        try Files.makeFolders(folder)
    }

    /// Made invisible, so that its content can still be examined.
    func goAway() async throws {
        guard try FileStatus.ifPresent(at: folder) != nil else { return }
        try Files.rename(folder, to: FilePath(bytes: folder.bytes + Array(".away".utf8)))
    }

    func close() async throws {}

    func comeBack() throws { try Files.rename(FilePath(bytes: folder.bytes + Array(".away".utf8)), to: folder) }
}

/// A bucket in memory that takes parts of any size. Its keys are text.
private final class BucketEnd: RemoteFixture {
    let destination: any Destination
    let emulator: S3Emulator
    private let signer: SignerServer?
    let secret: String?
    private let temporary = TemporaryFolder()
    var folder: FilePath { temporary.path }

    init(isPresigned: Bool = false) throws {
        emulator = try S3Emulator()
        let signer = isPresigned ? try SignerServer() : nil
        self.signer = signer
        secret = isPresigned ? "signature-that-nobody-may-see" : "a-key-that-nobody-may-see"
        if let signer { emulator.change { $0.judge = { signer.refusal($0) } } }
        var preset = try #require(S3Preset.named("other"))
        preset.smallestPart = 1
        var settings = S3Settings(
            preset: preset, bucket: "bucket", region: "us-east-1", endpoint: emulator.url, isVirtual: false,
            checksum: .md5, tags: preset.tags)
        settings.partSize = Int64(TestedRemote.chunk)
        settings.singleUpTo = 500
        settings.parallel = 1
        let key = S3Access.kept(.words(id: .literal("AK"), secret: .literal(secret ?? ""), token: nil))
        let access = signer.map { S3Access.signer(.service(url: $0.url, headers: [], caFile: nil), hosts: []) }
        destination = S3(settings, access ?? key, tools(Transport()))
    }

    var objects: [FilePath: [UInt8]] {
        Dictionary(emulator.objects.map { (FilePath($0.key), $0.value.bytes) }) { $1 }
    }
    var remains: [FilePath] { emulator.uploads.values.map { FilePath($0.key) } }
    func place(of name: FilePath) -> FilePath { name.text == nil ? FilePath(name.display) : name }
    func goAway() async throws { emulator.stop() }
    func close() async throws { emulator.stop() }
}

private func tools(_ transport: any Transporting) -> DestinationTools {
    DestinationTools(
        transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
}
