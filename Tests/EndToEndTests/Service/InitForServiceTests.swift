import Core
import Glibc
import Linux
import TestKit
import Testing

/// `sluice init` of root, for the service of the system: in a mount namespace with an `/etc` of its own, where the
/// service's user has an account.
@Suite(
    "sluice init for the service of the system",
    .enabled(if: geteuid() == 0 && NetworkNamespace.isPossible, "users and mounts take root: run the tests as root"),
    .timeLimit(.minutes(Patience.minutes(3))))
struct InitForServiceTests {
    private static let user: UInt32 = 47_110
    private static let cameras: UInt32 = 47_111
    private let folder = TemporaryFolder()
    private var etc: FilePath { folder.path.appending("etc") }
    private var written: FilePath { etc.appending("sluice/sluice.yaml") }
    private var home: FilePath { folder.path.appending("home") }
    private var videos: FilePath { home.appending("videos") }
    private var nas: FilePath { folder.path.appending("nas") }

    init() throws {
        for path in [folder.path, home, videos, nas, etc, etc.appending("sluice")] { try make(path) }
        try make(etc.appending("systemd/system"))
        for name in ["nsswitch.conf", "hosts", "resolv.conf"] {
            // A machine may have none of them.
            if let content = try? Files.read(FilePath("/etc").appending(FilePath(name))) {
                try folder.write(FilePath("etc/\(name)"), content)
            }
        }
        try folder.write(
            "etc/passwd",
            Array("root:x:0:0::/root:/bin/sh\nsluice:x:\(Self.user):\(Self.user)::/nonexistent:/bin/false\n".utf8))
        try folder.write(
            "etc/group", Array("root:x:0:\nsluice:x:\(Self.user):\ncameras:x:\(Self.cameras):\n".utf8))
        try unit("[Service]\nUser=sluice\nGroup=sluice\n")
        for name in ["passwd", "group"] { try give(etc.appending(FilePath(name)), user: 0, mode: 0o644) }
        try give(nas, user: Self.user, mode: 0o750)
    }

    private func make(_ path: FilePath) throws {
        try Files.makeFolders(path)
        try give(path, user: 0, mode: 0o755)
    }

    private func give(_ path: FilePath, user: UInt32, group: UInt32? = nil, mode: mode_t) throws {
        try systemCall("chown", on: path.display) { path.withCString { chown($0, user, group ?? user) } }
        try systemCall("chmod", on: path.display) { path.withCString { chmod($0, mode) } }
    }

    private func unit(_ text: String) throws {
        try folder.write("etc/systemd/system/sluice.service", Array(text.utf8))
    }

    /// - Returns: Its status, and what it printed on both streams, with each space or line end as one space.
    private func initialise(_ more: [String] = [], to target: FilePath? = nil, at address: String? = nil) async throws
        -> (
            status: Child.Ending, said: String
        )
    {
        let name = hexadecimal(Random.bytes(4))
        let script = "mount --bind \"$1\" /etc && shift && exec \"$@\""
        let words =
            [
                try Setting.binary().display, "init", "--folder", videos.display, "--to",
                address ?? (target ?? nas).display,
            ] + more
        let child = try Child(
            "/usr/bin/unshare", ["--mount", "--propagation", "private", "sh", "-c", script, "sh", etc.display] + words,
            environment: ["SLUICE_CONFIG": ""], output: folder.path.appending(FilePath(name + ".out")),
            errors: folder.path.appending(FilePath(name + ".err")))
        let ending = try await child.end(within: .seconds(60))
        let text = try child.standardOutput() + child.standardError()
        return (ending, text.split { $0 == " " || $0 == "\n" }.joined(separator: " "))
    }

    @Test("a folder that the service may use passes, its test file is removed, and the files are of its group")
    func passes() async throws {
        let result = try await initialise(["--after", "keep"])
        #expect(result.status == .status(0), "\(result.said)")
        #expect(result.said.contains("a test file arrived, and was removed again"))
        #expect(try Files.names(in: nas) == [])
        var status = stat()
        #expect(written.withCString { stat($0, &status) } == 0)
        #expect(status.st_uid == 0 && status.st_gid == Self.user && status.st_mode & 0o7777 == 0o640)
    }

    @Test("a watched folder that only root may read is refused with the folder, the user and the command")
    func unreadable() async throws {
        try give(videos, user: 0, mode: 0o700)
        let result = try await initialise(["--offline"])
        #expect(result.status == .status(78), "\(result.said)")
        #expect(result.said.contains("the user `sluice` may not read \(videos.display)"))
        #expect(
            result.said.contains("`sudo chgrp -R sluice \(videos.display) && sudo chmod -R g+rX \(videos.display)`"))
        #expect(result.said.contains("Nothing was written"))
        #expect(try Files.names(in: etc.appending("sluice")) == [])
    }

    @Test("a person's folder on the way that is closed to the service is named")
    func closedParent() async throws {
        try give(home, user: 47_112, mode: 0o700)
        let result = try await initialise(["--offline"])
        #expect(result.status == .status(78), "\(result.said)")
        #expect(result.said.contains("the user `sluice` may not enter \(home.display)"))
        #expect(result.said.contains("`sudo setfacl -m u:sluice:x \(home.display)`"))
    }

    @Test("deleting sources takes the right to write, and a group that has it is named")
    func group() async throws {
        try give(videos, user: 47_112, group: Self.cameras, mode: 0o770)
        let refused = try await initialise(["--after", "delete", "--offline"])
        #expect(refused.status == .status(78), "\(refused.said)")
        #expect(refused.said.contains("`sudo usermod -aG cameras sluice`"))
        // As an administrator gives it to the service alone.
        try unit("[Service]\nUser=sluice\nGroup=sluice\nSupplementaryGroups=cameras\n")
        let result = try await initialise(["--after", "delete", "--offline"])
        #expect(result.status == .status(0), "\(result.said)")
    }

    @Test("a target folder that the service may not write to, or that is missing, is refused with the command")
    func target() async throws {
        try give(nas, user: 0, mode: 0o755)
        let closed = try await initialise()
        #expect(closed.status == .status(76), "\(closed.said)")
        #expect(closed.said.contains("the user `sluice` may not write to \(nas.display)"))
        #expect(closed.said.contains("`sudo chgrp -R sluice \(nas.display)"))
        let gone = folder.path.appending("none")
        let missing = try await initialise(to: gone)
        #expect(missing.status == .status(76), "\(missing.said)")
        #expect(missing.said.contains("`sudo install -d -o sluice -g sluice \(gone.display)`"))
        #expect(try Files.names(in: etc.appending("sluice")) == [])
    }

    @Test("a unit whose user has no account is refused, and one of root is checked as root")
    func accounts() async throws {
        try unit("[Service]\nUser=missing-user\n")
        let none = try await initialise()
        #expect(none.status == .status(78))
        #expect(none.said.contains("there is no user `missing-user`") && none.said.contains("systemd-sysusers"))
        try unit("[Service]\nExecStart=/usr/bin/sluice run\n")
        try give(videos, user: 0, mode: 0o700)
        #expect(try await initialise(["--offline"]).status == .status(0))
    }

    @Test("a token that only root may read is refused")
    func token() async throws {
        let token = try folder.write("etc/sluice/server.token", Array("a-token-of-24-characters\n".utf8))
        try give(token, user: 0, mode: 0o600)
        let result = try await initialise(
            ["--token-file", "/etc/sluice/server.token", "--offline"], at: "http://127.0.0.1:1/files/")
        #expect(result.status == .status(78), "\(result.said)")
        #expect(result.said.contains("/etc/sluice/server.token` cannot be read: Permission denied"))
    }
}
