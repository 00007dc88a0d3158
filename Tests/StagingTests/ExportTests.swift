import Core
import Digests
import Glibc
import Linux
import TestKit
import Testing

@testable import Staging

/// Commands that make the file to upload. The shell takes the place of third-party programs.
@Suite("Export", .timeLimit(.minutes(Patience.minutes(1))))
struct ExportTests {
    let folder = TemporaryFolder()
    let area: StagingArea
    let source: FilePath

    init() throws {
        area = StagingArea(folder: folder.path.appending("staging"))
        try area.prepare()
        source = try folder.write("clip one.mov", noise(50_000))
    }

    private func export(
        _ script: String, timeout: Duration = .seconds(30), minSize: Int64 = 1, digestsSource: Bool = false,
        progress: (ExportProgress) -> Void = { _ in }, isStopped: @escaping () -> Bool = { false }
    ) throws -> (copy: StagingArea.FreshCopy, sourceSHA256: [UInt8]?) {
        let command = try CommandWords(["sh", "-c", script, "sh", "{input}", "{output}", "{stem}"])
        return try area.export(
            CopyingTests.wanted(source), as: "1",
            Export(
                command: command, output: "clip one.mp4", timeout: timeout, minSize: minSize, folder: "cam",
                relative: "day/clip one.mov"), digestsSource: digestsSource, progress: progress, isStopped: isStopped)
    }

    private func refusal(_ script: String, timeout: Duration = .seconds(30), minSize: Int64 = 1) throws -> StagingError
    {
        let error = #expect(throws: StagingError.self) {
            _ = try export(script, timeout: timeout, minSize: minSize)
        }
        #expect(try Files.names(in: area.folder).isEmpty, "a failure leaves no file")
        return try #require(error)
    }

    @Test("the output of the command becomes the copy, with its own digest and size, and its scratch folder is removed")
    func made() throws {
        let made = try export(
            "head -c 20000 \"$1\" > \"$2\"; echo \"$3\" >> \"$2\"; touch left-over; mkdir -p a/b; ln -s / a/b/root",
            digestsSource: true)
        try area.publish([made.copy])
        let expected = Array(try Files.read(source)[..<20_000]) + Array("clip one\n".utf8)
        #expect(try Files.read(area.path("1")) == expected)
        #expect(made.copy.sha256 == Hasher.digest(.sha256, of: expected))
        #expect(made.copy.size == Int64(expected.count))
        #expect(try made.sourceSHA256 == contentDigest(of: source))
        #expect(try Files.names(in: area.folder) == ["1"])
        #expect(try FileStatus(at: area.path("1")).mode & 0o777 == 0o600)
        #expect(try FileStatus.ifPresent(at: "/") != nil)
    }

    @Test("digests of parts of the output are known too")
    func parts() throws {
        let command = try CommandWords(["sh", "-c", "head -c 20000 \"$1\" > \"$2\"", "sh", "{input}", "{output}"])
        let made = try area.export(
            CopyingTests.wanted(source), as: "1",
            Export(
                command: command, output: "out", timeout: .seconds(30), minSize: 1, folder: "cam", relative: "clip"),
            digestsSource: false,
            requestedDigests: { size in [PartDigests.RequestedDigest(partSize: size - 1, kind: .md5)] })
        let requested = PartDigests.RequestedDigest(partSize: 19_999, kind: .md5)
        let content = try Files.read(source)
        #expect(made.copy.parts.digest(requested, of: 0) == Hasher.digest(.md5, of: Array(content[..<19_999])))
        #expect(made.copy.parts.digest(requested, of: 1) == Hasher.digest(.md5, of: [content[19_999]]))
    }

    @Test("the last output lines of a failed command are quoted, however much it printed")
    func failed() throws {
        let script =
            "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; echo 'no such codec' >&2; exit 3"
        guard case .commandFailed(code: .exportFailed, let text) = try refusal(script) else {
            Issue.record("the export does not fail because of the file")
            return
        }
        #expect(text.contains("status 3") && text.contains("no such codec") && text.contains("line 19999"))
        #expect(text.utf8.count < 1000)
    }

    @Test(
        "unusable output fails the file",
        arguments: [
            ("true", "not there"), (": > \"$2\"", "has 0 B"), ("mkdir \"$2\"", "not a file"),
            ("ln -s /etc/passwd \"$2\"", "is a symbolic link"), ("ln -L \"$1\" \"$2\"", "hard link"),
            ("printf 123 > \"$2\"", "has 3 B"),
        ])
    func output(_ script: String, _ words: String) throws {
        guard case .commandFailed(code: .exportNoOutput, let text) = try refusal(script, minSize: 4) else {
            Issue.record("the export does not fail because of its output")
            return
        }
        #expect(text.contains(words), "\(text)")
    }

    @Test("a command that takes too long is killed with all its children")
    func timeout() async throws {
        let pids = folder.path.appending("pids")
        let script = "sleep 600 & echo $! > \(pids.display); echo $$ >> \(pids.display); wait"
        guard case .commandFailed(code: .exportTimeout, _) = try refusal(script, timeout: .milliseconds(700)) else {
            Issue.record("the export does not fail because of its time-out")
            return
        }
        try await expectGone(pids)
    }

    @Test("a cancelled command is killed at once")
    func stopped() async throws {
        let pids = folder.path.appending("pids")
        var seen = 0
        let error = #expect(throws: StagingError.self) {
            _ = try export(
                "sleep 600 & echo $! > \(pids.display); echo 50%; wait",
                progress: { if $0.fraction == 0.5 { seen += 1 } }, isStopped: { seen > 0 })
        }
        guard case .stopped? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        try await expectGone(pids)
    }

    private func expectGone(_ pids: FilePath) async throws {
        let text = String(decoding: try Files.read(pids), as: UTF8.self)
        for pid in text.split(whereSeparator: \.isNewline).compactMap({ Int32($0) }) {
            try await eventually("process \(pid) has ended") {
                // init reaps an orphan in its own time; the point is that it does not run.
                guard let state = try? Files.read(FilePath("/proc/\(pid)/stat")) else { return true }
                return String(decoding: state, as: UTF8.self).contains(") Z ")
            }
        }
    }

    @Test("children left by the command are killed, and do not delay the export")
    func leftRunning() async throws {
        let pids = folder.path.appending("pids")
        _ = try export("cp \"$1\" \"$2\"; sleep 600 & echo $! > \(pids.display)")
        try await expectGone(pids)
    }

    @Test("a missing program is a configuration error, a killed one is tried again")
    func otherReasons() throws {
        let missing = #expect(throws: StagingError.self) {
            _ = try area.export(
                CopyingTests.wanted(source), as: "1",
                Export(
                    command: try CommandWords(["no-such-program-anywhere", "{input}", "{output}"]), output: "a.mp4",
                    timeout: .seconds(9), minSize: 1, folder: "cam", relative: "a"), digestsSource: false)
        }
        guard case .noCommand(let text, isOfAll: true)? = missing else {
            Issue.record("\(String(describing: missing))")
            return
        }
        #expect(text.contains("no-such-program-anywhere") && text.contains("No such file"))
        guard case .commandEnded = try refusal("kill -9 $$") else {
            Issue.record("a command killed from outside fails the file")
            return
        }
        guard case .commandFailed(code: .exportFailed, _) = try refusal("kill -SEGV $$") else {
            Issue.record("a crashed command does not fail the file")
            return
        }
        guard case .commandFailed = try refusal(Self.fullDisk) else {
            Issue.record("a full disk outside staging does not fail the file")
            return
        }
    }

    private static let fullDisk = "echo 'av_interleaved_write_frame(): No space left on device' >&2; exit 1"

    @Test("a command that finds the staging disk full does not fail the file", .enabled(if: SmallDisk.isPossible))
    func fullDisk() throws {
        let disk = try SmallDisk()
        let small = StagingArea(folder: disk.path.appending("staging"))
        try small.prepare()
        let command = try CommandWords(["sh", "-c", Self.fullDisk, "sh", "{input}", "{output}"])
        let error = #expect(throws: StagingError.self) {
            _ = try small.export(
                CopyingTests.wanted(source), as: "1",
                Export(
                    command: command, output: "a.mp4", timeout: .seconds(30), minSize: 1, folder: "cam",
                    relative: "a.mov"),
                digestsSource: false, progress: { _ in }, isStopped: { false })
        }
        guard case .full? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("a source that changes during the export is detected, whatever the command reports")
    func changed() throws {
        for ending in ["", "; exit 1"] {
            guard case .changed = try refusal("cp \"$1\" \"$2\"; echo more >> \"$1\"\(ending)") else {
                Issue.record("the change is not detected")
                return
            }
        }
        // `{input}` is a separate link: the command removes only the source under its path.
        guard case .missing = try refusal("cp \"$1\" \"$2\"; rm '\(source.display)'") else {
            Issue.record("the missing source is not detected")
            return
        }
    }

    @Test("the command sees an empty standard input, its scratch folder, and no secrets in the environment")
    func surroundings() throws {
        setenv("SLUICE_TEST_SECRET", "hush", 1)
        let made = try export(
            "cat > \"$2\"; pwd >> \"$2\"; env >> \"$2\"; id=$(cat /proc/$$/stat); echo \"$id\" >> \"$2\"")
        try area.publish([made.copy])
        let text = String(decoding: try Files.read(area.path("1")), as: UTF8.self)
        #expect(text.hasPrefix(area.folder.appending("1.export").display + "\n"))
        #expect(text.contains("PATH=") && text.contains("TMPDIR=\(area.folder.display)/1.export"))
        #expect(!text.contains("hush"))
    }

    @Test("a sweep removes the remains of an interrupted export")
    func swept() async throws {
        try folder.write("staging/17.export/clip.mp4", [1])
        try folder.write("staging/17.export/a/b", [1])
        let sweep = StagingWalk(area)
        while try await sweep.next(atMost: 4) != nil {}
        #expect(try Files.names(in: area.folder).isEmpty)
    }
}
