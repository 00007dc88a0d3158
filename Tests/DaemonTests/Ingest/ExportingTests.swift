import API
import Core
import Digests
import Glibc
import Linux
import Staging
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Folders whose files are converted by a command.
@Suite("Exports in the daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct ExportingTests {
    private static func export(_ script: String, program: String = "sh") throws -> ExportSettings {
        ExportSettings(
            command: try CommandWords([program, "-c", script, "sh", "{input}", "{output}"]),
            output: try Template("{stem}.mp4"), timeout: .seconds(30), minSize: 1)
    }

    private func scene(
        _ script: String, program: String = "sh", after: SourceAction = .keep
    ) async throws -> DaemonScene {
        try await DaemonScene { settings in
            settings.folders[0].export = try Self.export(script, program: program)
            settings.folders[0].afterUpload = after
            settings.folders[0].name = try Template("{relative}")
        }
    }

    private func row(_ scene: DaemonScene, _ id: String) async throws -> UploadRow {
        try #require(try await scene.daemon.context.store.read { try $0.uploads.row(id) })
    }

    @Test(
        "the output of the command is uploaded with its own name and size, and the source released after verification")
    func made() async throws {
        let scene = try await scene("head -c 700 \"$1\" > \"$2\"", after: .delete)
        let path = try scene.folder.write("cam/day 1/clip.mov", noise(2000))
        let id = try await scene.add(path)
        try await scene.reach(.completed, [id])
        #expect(scene.remote.objects == ["day 1/clip.mp4"])
        #expect(scene.remote.contents == [Array(noise(2000).prefix(700))])
        let row = try await row(scene, id)
        #expect(row.upload.size == 700 && row.upload.mediaType == "video/mp4")
        #expect(row.asset.size == 2000 && row.asset.stagedSize == 700)
        try await eventually("source and staged copy have been deleted") {
            let isGone = try FileStatus.ifPresent(at: path) == nil
            return try isGone && scene.copies.isEmpty
        }
        try await eventually("no bytes count as staged") {
            try await scene.daemon.context.store.read { try $0.staging.totalBytes() } == 0
        }
        try await scene.stop()
    }

    @Test("a source that changed after its export is kept")
    func changedLater() async throws {
        let scene = try await scene("cp \"$1\" \"$2\"", after: .delete)
        scene.remote.standard = .waitUploading
        let path = try scene.folder.write("cam/clip.mov", noise(2000))
        let id = try await scene.add(path)
        try await scene.isRunning(1)
        let file = try Descriptor.open(path, for: .updating)
        let status = try FileStatus(at: path)
        try file.write([1, 2, 3], named: path)
        try file.setModified(status.modified, named: path)
        try file.close(named: path)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        try await eventually("the release has kept the source") { try await row(scene, id).asset.sourceState == .kept }
        #expect(try FileStatus.ifPresent(at: path) != nil)
        try await scene.stop()
    }

    @Test("a failed export shows the output of the command, and retry runs it again")
    func failed() async throws {
        let scene = try await scene(
            "test -e \"$(readlink -f \"$1\").ok\" && cp \"$1\" \"$2\" || {{ echo no such codec >&2; exit 7; }}")
        let path = try scene.folder.write("cam/clip.mov", noise(2000))
        let id = try await scene.add(path)
        try await scene.reach(.failed, [id])
        let failure = try #require(try await row(scene, id).failure)
        #expect(failure.code == .exportFailed)
        #expect(failure.message.contains("status 7") && failure.message.contains("no such codec"))
        #expect(try scene.copies.isEmpty)
        try scene.folder.write("cam/clip.mov.ok", [])
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a missing command holds only its own folder, and a reload that corrects it continues")
    func missing() async throws {
        let scene = try await scene("", program: "no-such-program-anywhere")
        let waits = try await scene.add("clip.mov", size: 2000)
        try await eventually("a hold names the missing program") {
            let holds = try await scene.daemon.show(waits).upload.holds
            return holds.contains { $0.text.contains("no-such-program-anywhere") }
        }
        #expect(try await scene.daemon.status().warnings.contains { $0.contains("no-such-program-anywhere") })
        let other = try await scene.add("other.mov", in: "solo")
        try await scene.reach(.completed, [other])
        let mended = try Self.export("cp \"$1\" \"$2\"")
        scene.written.edit { $0.folders[0].export = mended }
        _ = try await scene.daemon.reload()
        try await scene.reach(.completed, [waits])
        #expect(try await scene.daemon.status().warnings.isEmpty)
        try await scene.stop()
    }

    @Test("a long export shows progress, lets copies run, and stops at once on cancel")
    func cancelled() async throws {
        let scene = try await scene("echo $$ > \"$(readlink -f \"$1\").pid\"; echo 40%; exec sleep 600")
        let path = try scene.folder.write("cam/clip.mov", noise(2000))
        let id = try await scene.add(path)
        try await eventually("the progress of the export is known") {
            try await scene.daemon.show(id).upload.staging?.fraction == 0.4
        }
        #expect(try await scene.daemon.show(id).upload.staging?.work == "exporting")
        #expect(try await scene.daemon.status().staging.running?.map(\.path) == [path.display])
        let events = try await scene.daemon.events.progress()
        #expect(events.map { $0.op?.id } == [id])
        let other = try await scene.add("other.mov", in: "solo")
        try await scene.reach(.completed, [other])
        let pid = Int32(
            String(decoding: try Files.read(FilePath(bytes: path.bytes + Array(".pid".utf8))).dropLast(), as: UTF8.self)
        )
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await eventually("the export command has ended") { kill(try #require(pid), 0) == -1 }
        try await eventually("no copy is left") { try scene.copies.isEmpty }
        #expect(try await scene.state(id) == .cancelled)
        try await scene.stop()
    }

    @Test("a stop of the daemon kills the export command, and the next start exports again")
    func stopped() async throws {
        let scene = try await scene("echo $$ > \"$(readlink -f \"$1\").pid\"; echo 40%; exec sleep 600")
        let path = try scene.folder.write("cam/clip.mov", noise(2000))
        let id = try await scene.add(path)
        try await eventually("the export runs") { try await scene.daemon.show(id).upload.staging?.fraction == 0.4 }
        let pid = Int32(
            String(decoding: try Files.read(FilePath(bytes: path.bytes + Array(".pid".utf8))).dropLast(), as: UTF8.self)
        )
        try await scene.stop()
        #expect(kill(try #require(pid), 0) == -1)
    }

    @Test("an export whose folder no longer configures one waits with the reason")
    func settingGone() async throws {
        let scene = try await scene("", program: "no-such-program-anywhere")
        let id = try await scene.add("clip.mov", size: 2000)
        try await eventually("the upload has a hold") { try await !scene.daemon.show(id).upload.holds.isEmpty }
        scene.written.edit { $0.folders[0].export = nil }
        _ = try await scene.daemon.reload()
        try await eventually("a hold names the missing `export`") {
            try await scene.daemon.show(id).upload.holds.contains {
                $0.text.contains("an `export`, which is no longer configured")
            }
        }
        #expect(try await scene.state(id) == .staging)
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        _ = try await scene.daemon.reload()
        #expect(try await scene.daemon.status().warnings.isEmpty, "no upload waits for the program")
        try await scene.stop()
    }
}
