import Core
import Glibc
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// The files that the watcher was asked to deliver again.
final class Asked: Sendable {
    private let files = Mutex<Set<FilePath>>([])
    var all: Set<FilePath> { files.withLock { $0 } }
    func insert(_ file: FilePath) { files.withLock { _ = $0.insert(file) } }
}

/// A folder with groups, without a daemon.
struct GroupScene {
    let scene: ComponentScene
    let grouper: FileGrouper
    /// The files that the watcher was asked to deliver again.
    let asked = Asked()

    init(_ rule: GroupRule, marker: String? = nil, largest: Int64? = nil, most: Int = 100) async throws {
        scene = try await ComponentScene {
            $0.folders[0].group = rule
            $0.folders[0].watch.limits.maxSize = largest
            $0.folders[0].watch.marker = marker.flatMap { MarkerName($0) }
            $0.folders[0].watch.include = rule.include(with: $0.folders[0].watch.include)
        }
        try Files.makeFolders(scene.folder.path.appending("cam"))
        let asked = asked
        grouper = scene.parts.grouper(maxWaitingFiles: most) { _, path in
            asked.insert(path)
        }
    }

    /// Writes a file.
    func write(_ name: FilePath, _ text: String = "some bytes") throws {
        _ = try scene.folder.write(FilePath("cam").appending(name), Array(text.utf8))
    }

    /// Describes a file as if it had settled.
    func settled(_ name: FilePath) throws -> SettledFile {
        let root = scene.folder.path.appending("cam")
        let status = try FileStatus(at: root.appending(name))
        return SettledFile(
            folder: "cam", root: root, relative: name, status: status,
            identity: FileIdentity(
                folder: "cam", relative: name, size: status.size, modified: status.modified, inode: status.inode,
                born: nil, fileSystem: nil), settledBy: .quiet)
    }

    func settle(_ names: FilePath...) async throws {
        #expect(await grouper.partition(try names.map { try settled($0) }).isEmpty)
    }

    func names() async throws -> Set<String> { Set(try await scene.uploads().keys) }

    /// The reasons why files wait.
    func reasons() async -> [String: String] {
        await grouper.waiting(naming: 100)["cam"]?.first.reduce(into: [:]) {
            $0[$1.file.relative.display] = $1.reason
        } ?? [:]
    }

    /// Runs the loop until `body` has ended.
    func run(_ body: () async throws -> Void) async throws {
        let loop = Task { try await grouper.run() }
        defer { loop.cancel() }
        try await body()
    }

    /// Waits until the file waits for this reason.
    func waits(_ name: String, _ reason: String) async throws {
        try await eventually("\(name) waits: \(reason)", every: .milliseconds(20)) {
            scene.clocks.advance(by: .seconds(1))
            scene.parts.signals.grouping.signal()
            return await reasons()[name]?.contains(reason) == true
        }
    }

    /// Waits until exactly these are recorded.
    func records(_ wanted: Set<String>) async throws {
        try await eventually("these are recorded: \(wanted)", every: .milliseconds(20)) {
            scene.clocks.advance(by: .seconds(1))
            scene.parts.signals.grouping.signal()
            return try await names() == wanted
        }
    }

    /// The units of the recorded files: the files that go together, by the remote names.
    func units() async throws -> Set<Set<String>> {
        var groups: [Int: Set<String>] = [:]
        for (name, upload) in try await scene.uploads() {
            let summary = try #require(try await scene.store.read { try $0.groups.summary(ofUpload: upload.id) })
            groups[summary.files * 1_000_000 + Int(summary.bytes), default: []].insert(name)
            #expect(summary.folder == "cam")
        }
        return Set(groups.values)
    }
}
