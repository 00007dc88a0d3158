import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// The program under a journald of the test's own, which is read with `journalctl`.
@Suite(
    "The journal, with the built program", .enabled(if: Journal.isPossible, "\(Journal.need)"),
    .timeLimit(.minutes(Patience.minutes(2))))
struct JournalEndToEndTests {
    private struct Entry: Decodable {
        var MESSAGE: String
        var PRIORITY: String
        var SYSLOG_IDENTIFIER: String
        var SLUICE_EVENT: String
        var SLUICE_PATH: String?
        var SLUICE_SIZE: String?
        var SLUICE_DESTINATION: String?
        var _TRANSPORT: String
    }

    @Test("the reason why the program does not start has error priority")
    func start() async throws {
        let folder = TemporaryFolder()
        let config = try folder.write("sluice.yaml", Array("version: 1\nfolders: 5\n".utf8))
        let child = try Child(
            "/bin/sh",
            [
                "-c", "export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2); exec \"$@\"", "sh",
                try Setting.binary().display, "run", "--config", config.display,
            ], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        let lines = try child.standardError().split(separator: "\n")
        #expect(lines.contains { $0.contains("folders") } && lines.allSatisfy { $0.hasPrefix("<3>") }, "\(lines)")
    }

    @Test("the journal has each fact as a searchable field, and the same line as text")
    func fields() async throws {
        let journal = try await Journal()
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        // As systemd sets it: standard error belongs to the journal.
        try fixture.startDaemon(
            inMounts: """
                mount --bind \(journal.run.display) /run
                export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2)
                """)
        try camera.drop(Clip(number: 0, size: 12_345, relative: "a clip.mp4"))
        let path = fixture.drop.appending("a clip.mp4").display
        let text = try await eventually("the journal has an entry with both fields", every: .milliseconds(100)) {
            let text = try await journal.ask(["SLUICE_EVENT=uploaded and verified", "SLUICE_PATH=\(path)"])
            return text.isEmpty ? nil : text
        }
        let entry = try JSONDecoder().decode(Entry.self, from: Data(text.utf8))
        #expect(entry.PRIORITY == "6" && entry.SYSLOG_IDENTIFIER == "sluice" && entry._TRANSPORT == "journal")
        #expect(entry.SLUICE_SIZE == "12345" && entry.SLUICE_DESTINATION == "nas")
        #expect(entry.MESSAGE.hasPrefix("uploaded and verified id=") && entry.MESSAGE.contains("path=\"\(path)\""))
        // Each was logged once.
        #expect(try fixture.daemon?.standardError() == "")
    }
}

/// A journald from Debian, with a folder in place of `/run`. It ends with this object.
private final class Journal {
    let run: FilePath
    private let folder = TemporaryFolder()
    private let daemon: Child

    private static let program: FilePath = "/lib/systemd/systemd-journald"
    static let isPossible =
        geteuid() == 0 && FileManager.default.isExecutableFile(atPath: program.display)
        && NetworkNamespace.isPossible
    static let need = "a journal of its own needs root and journald (package systemd): sudo make test"

    init() async throws {
        run = folder.path.appending("run")
        // It keeps its files if this folder exists.
        try Files.makeFolders(run.appending("log/journal"))
        try Files.makeFolders(run.appending("systemd/journal"))
        daemon = try Child(
            "/usr/bin/unshare",
            ["-m", "/bin/sh", "-ec", "mount --bind \(run.display) /run; exec \(Self.program.display)"],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let socket = run.appending("systemd/journal/socket")
        try await eventually("journald listens") { try FileStatus.ifPresent(at: socket) != nil }
    }

    deinit { daemon.end(with: SIGKILL) }

    func ask(_ matches: [String]) async throws -> String {
        let (output, errors) = (folder.path.appending("asked"), folder.path.appending("asked.err"))
        let child = try Child(
            "/usr/bin/journalctl",
            ["-D", run.appending("log/journal").display, "-o", "json", "--no-pager", "-q"] + matches, output: output,
            errors: errors)
        let ending = try await child.end(within: .seconds(20))
        let complaint = try child.standardError()
        #expect(ending == .status(0) || ending == .status(1), "\(complaint)")
        return try child.standardOutput()
    }
}
