import Core
import Digests
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// Behaviour of a folder beyond the contract of every destination.
@Suite("Directory", .timeLimit(.minutes(Patience.minutes(1))))
struct DirectoryTests {
    private func content(_ end: DirectoryEnd, _ name: FilePath) throws -> [UInt8] {
        try Files.read(end.folder.appending(name))
    }

    private func put(_ content: [UInt8], _ end: DirectoryEnd, _ name: FilePath) throws {
        let path = end.folder.appending(name)
        try Files.makeFolders(path.parent)
        try Files.replace(path, with: content)
    }

    private func code(_ end: DirectoryEnd, _ staged: StagedUpload) async throws -> Failure.Code {
        try await staged.failure(to: end).failure.code
    }

    // MARK: Names that are taken

    @Test("the same content under its name or a numbered name is done, and nothing is written")
    func held() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(10, name: "clip.mp4")
        try put(noise(10, seed: 5), end, "clip.mp4")
        try put(staged.content, end, "clip (2).mp4")
        let recorder = RecordingReporter()
        let object = try await staged.send(to: end, recorder)
        #expect(object.verifiedBy == "held")
        #expect(object.url == end.folder.appending("clip (2).mp4").display)
        #expect(recorder.last == nil, "a cancel has nothing to remove")
        #expect(try end.objects.count == 2)
    }

    @Test("`replace` replaces files, and nothing else")
    func replaces() async throws {
        let end = try DirectoryEnd(taken: .replace)
        let staged = try StagedUpload(10, name: "clip.mp4")
        try put([1, 2, 3], end, "clip.mp4")
        #expect(try await staged.send(to: end, RecordingReporter()).verifiedBy == "digest")
        #expect(try end.objects == ["clip.mp4": staged.content])
        try Files.makeFolders(end.folder.appending("folder.mp4"))
        let error = try await StagedUpload(10, name: "folder.mp4").failure(to: end)
        #expect(error.failure.code == .nameTaken)
        #expect(error.remedy == .failUpload)
    }

    @Test("`fail` fails before any byte is written")
    func fails() async throws {
        let end = try DirectoryEnd(taken: .fail)
        try put([1, 2, 3], end, "clip.mp4")
        let recorder = RecordingReporter()
        let error = try await StagedUpload(10, name: "clip.mp4").failure(to: end, recorder)
        #expect(error.failure.code == .nameTaken)
        #expect(error.remedy == .failUpload)
        #expect(recorder.last == nil)
        #expect(try end.objects == ["clip.mp4": [1, 2, 3]])
    }

    @Test("a link under the name is neither written through nor replaced", arguments: NameConflictRule.allCases)
    func linkAsName(_ taken: NameConflictRule) async throws {
        let end = try DirectoryEnd(taken: taken)
        let outside = TemporaryFolder()
        let precious = try outside.write("precious", [1, 2, 3])
        try #require(makeLink(to: precious, at: end.folder.appending("clip.mp4")))
        let staged = try StagedUpload(10, name: "clip.mp4")
        if taken == .suffix {
            let object = try await staged.send(to: end, RecordingReporter())
            #expect(object.url == end.folder.appending("clip (2).mp4").display)
        } else {
            #expect(try await code(end, staged) == .nameTaken)
        }
        #expect(try Files.read(precious) == [1, 2, 3])
        #expect(try Files.names(in: outside.path) == ["precious"])
    }

    @Test("files of one name that arrive at the same moment are all kept")
    func race() async throws {
        let end = try DirectoryEnd()
        let stagedUploads = try (0..<12).map {
            try StagedUpload(5000, id: "\($0)", name: "same.mp4", seed: UInt64($0 + 1))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for staged in stagedUploads { group.addTask { _ = try await staged.send(to: end, RecordingReporter()) } }
            try await group.waitForAll()
        }
        let held = try end.objects
        #expect(Set(held.values) == Set(stagedUploads.map(\.content)))
        #expect(held.count == 12)
        #expect(try end.remains.isEmpty)
    }

    // MARK: Names that lead elsewhere

    @Test(
        "a name never leads out of the folder",
        arguments: ["../out", "a/../../out", "/etc/out", "a//b", "./a", "a/.", "a/", ""] as [FilePath])
    func escapes(_ name: FilePath) async throws {
        let end = try DirectoryEnd()
        let error = try await StagedUpload(10, name: name).failure(to: end)
        #expect(error.failure.code == .nameRefused)
        #expect(error.remedy == .failUpload)
        #expect(try end.objects.isEmpty)
        #expect(try Files.names(in: end.folder.parent) == ["in"])
    }

    @Test("a link among the folders of a name is not followed, and this upload needs a person")
    func linkAsFolder() async throws {
        let end = try DirectoryEnd()
        let outside = TemporaryFolder()
        try #require(makeLink(to: outside.path, at: end.folder.appending("front")))
        let error = try await StagedUpload(10).failure(to: end)
        #expect(error.failure.code == .folderInTheWay)
        #expect(error.remedy == .refused(after: nil))
        #expect(try Files.names(in: outside.path) == [])
    }

    @Test("a name component over the length limit is refused before a byte is copied")
    func tooLong() async throws {
        let end = try DirectoryEnd()
        let recorder = RecordingReporter()
        let long = FilePath(String(repeating: "x", count: 256))
        let error = try await StagedUpload(10, name: long.appending("a")).failure(to: end, recorder)
        #expect(error.failure.code == .nameRefused)
        #expect(recorder.sent.isEmpty)
    }

    // MARK: The intended folder

    @Test("without its marker nothing is written")
    func marker() async throws {
        let end = try DirectoryEnd(marker: ".sluice-target")
        let error = try await StagedUpload(10).failure(to: end)
        #expect(error.failure.code == .noMarker)
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(try Files.names(in: end.folder) == [])
        try put([], end, ".sluice-target")
        _ = try await StagedUpload(10).send(to: end, RecordingReporter())
        #expect(try await code(end, StagedUpload(10, name: ".sluice-target")) == .nameRefused)
    }

    @Test("without its mount nothing is written, and `/` is always mounted")
    func mount() async throws {
        let bare = TemporaryFolder()
        let end = try DirectoryEnd(mount: MountPoint(bare.path))
        let error = try await StagedUpload(10).failure(to: end)
        #expect(error.failure.code == .notMounted)
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(try Files.names(in: end.folder) == [])
        #expect(await end.destination.check().verdict == .failed)
        let anywhere = try DirectoryEnd(mount: MountPoint("/"))
        _ = try await StagedUpload(10).send(to: anywhere, RecordingReporter())
        #expect(!(await anywhere.destination.check().detail.contains("system's own disk")))
    }

    @Test("a folder that replaced the first one during a copy gets no file")
    func swapped() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(TestedRemote.chunk)
        let recorder = RecordingReporter()
        // Between the checkpoint and the copy the path becomes another folder.
        let swap = SwappingReporter(recorder) {
            try await end.goAway()
            try Files.makeFolders(end.folder)
        }
        let error = await #expect(throws: UploadError.self) {
            try await end.destination.upload(staged.order, reporter: swap)
        }
        #expect(error?.failure.code == .targetReplaced)
        #expect(try Files.names(in: end.folder) == [])
    }

    // MARK: Written bytes

    @Test("the time is kept, and the configured mode is set", arguments: [nil, 0o600, 0o664] as [UInt32?])
    func dress(_ mode: UInt32?) async throws {
        let end = try DirectoryEnd(mode: mode)
        let staged = try StagedUpload(10)
        _ = try await staged.send(to: end, RecordingReporter())
        let status = try FileStatus(at: end.folder.appending("front/clip.mp4"))
        #expect(status.modified == staged.order.modified)
        if let mode { #expect(status.mode & 0o777 == mode) }
        if mode == 0o664 { #expect(try FileStatus(at: end.folder.appending("front")).mode & 0o555 == 0o555) }
    }

    /// The possible state after a power cut of the target: the right length, and other content.
    @Test("acknowledged bytes that are gone are detected by reading back, and written again")
    func holes() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(3 * TestedRemote.chunk)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: end, recorder, accepting: TestedRemote.chunk)
        let part = try #require(try end.remains.first)
        let length = try FileStatus(at: end.folder.appending(part)).size
        try put([UInt8](repeating: 0, count: Int(length)), end, part)
        #expect(try await staged.send(to: end, recorder).verifiedBy == "digest")
        #expect(recorder.sent.contains { $0 <= Int64(TestedRemote.chunk) }, "the file was sent from its beginning")
        #expect(try end.objects == ["front/clip.mp4": staged.content])
    }

    @Test(
        "a temporary file that is missing, shorter or too long is started again if necessary",
        arguments: [0, 300, 9000])
    func part(_ length: Int) async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(3 * TestedRemote.chunk)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: end, recorder, accepting: TestedRemote.chunk)
        let part = try #require(try end.remains.first)
        if length == 0 {
            try Files.remove(end.folder.appending(part))
        } else {
            try put(Array((staged.content + noise(9000)).prefix(length)), end, part)
        }
        #expect(try await staged.send(to: end, recorder).verifiedBy == "digest")
        #expect(try end.objects == ["front/clip.mp4": staged.content])
    }

    @Test("a copy staged again with other content is not appended to the bytes of the first")
    func restaged() async throws {
        let end = try DirectoryEnd()
        let first = try StagedUpload(3 * TestedRemote.chunk, seed: 1)
        let second = try StagedUpload(3 * TestedRemote.chunk, seed: 2)
        let recorder = RecordingReporter()
        try await first.sendStopped(to: end, recorder, accepting: TestedRemote.chunk)
        _ = try await second.send(to: end, recorder)
        #expect(try end.objects == ["front/clip.mp4": second.content])
        #expect(try end.remains.isEmpty)
    }

    @Test("a corrupted staged copy is distinguished from a damaging target")
    func rotten() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(10)
        try staged.restage(noise(10, seed: 7))
        let error = try await staged.failure(to: end)
        #expect(error.failure.code == .stagedChanged)
        #expect(error.remedy == .restage(.changed))
        // There may be no source from which to make another copy.
        #expect(try end.remains.isEmpty)
    }

    @Test("discarding removes no file with its final name")
    func discard() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(10)
        let recorder = RecordingReporter()
        _ = try await staged.send(to: end, recorder)
        #expect(try await end.destination.discard(try #require(recorder.last)))
        #expect(try end.objects == ["front/clip.mp4": staged.content])
    }

    @Test("existing files are found by content, under any numbered name")
    func finds() async throws {
        let end = try DirectoryEnd()
        let staged = try StagedUpload(10)
        try put(noise(10, seed: 5), end, "front/clip.mp4")
        #expect(try await end.destination.find(staged.order) == .absent)
        _ = try await staged.send(to: end, RecordingReporter())
        guard case .found(let object) = try await end.destination.find(staged.order) else {
            Issue.record("the file was not found")
            return
        }
        #expect(object.url == end.folder.appending("front/clip (2).mp4").display)
        try await end.goAway()
        await #expect(throws: UploadError.self) { try await end.destination.find(staged.order) }
    }

    @Test(
        "reported content is on disk, and survives a power cut",
        .enabled("\(LoopDisk.need)") {
            await LoopDisk.isPossible.value
        }, arguments: LoopDisk.Kind.allCases)
    func foundIsDurable(_ kind: LoopDisk.Kind) async throws {
        let disk = try await LoopDisk(kind)
        let target = DirectoryTarget(
            name: "archive", path: disk.path, mount: nil, marker: nil, mode: nil, clocks: SystemClocks(),
            disk: SlowDisk(timeout: .seconds(60)))
        let staged = try StagedUpload(300_000, name: "clip.mp4")
        // Only in the kernel's cache, as after a copy by another program, or a rename before a kill.
        let file = try Descriptor.open(disk.path.appending("clip.mp4"), for: .creating)
        try file.write(staged.content, named: "clip.mp4")
        try file.close(named: "clip.mp4")
        guard case .found = try await DirectoryDestination(target, taken: .suffix).find(staged.order) else {
            Issue.record("the file was not found")
            return
        }
        try await disk.cutPower()
        #expect(try Files.read(disk.path.appending("clip.mp4")) == staged.content)
    }
}

/// Notes that do something once, after the first checkpoint.
private final class SwappingReporter: UploadReporter {
    private let recorder: RecordingReporter
    private let act: @Sendable () async throws -> Void

    init(_ recorder: RecordingReporter, _ act: @escaping @Sendable () async throws -> Void) {
        self.recorder = recorder
        self.act = act
    }

    func record(_ checkpoint: Checkpoint) async throws {
        try await recorder.record(checkpoint)
        try await act()
    }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        try await recorder.accepted(offset, checkpoint)
    }
    func companions() async throws -> [Companion] { try await recorder.companions() }
    func parts() async throws -> [AcknowledgedPart] { try await recorder.parts() }
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        try await recorder.recordParts(parts, lost: lost, acked: acked)
    }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        try await recorder.renewed(checkpoint, leaving: old)
    }
    func recordName(_ id: String, at url: String?) async throws { try await recorder.recordName(id, at: url) }
    func credential(_ renewal: CredentialRenewal) async throws { try await recorder.credential(renewal) }
    func sending(_ offset: Int64) { recorder.sending(offset) }
    func spent(_ bytes: Int64) {}
    func entered(_ phase: UploadPhase) {}
    var shouldPause: Bool { recorder.shouldPause }
}
