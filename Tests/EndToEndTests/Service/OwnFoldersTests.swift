import Core
import Glibc
import Linux
import TestKit
import Testing

/// The program as an ordinary user runs it, with the smallest configuration and no option.
@Suite("Folders of an ordinary user, with the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct OwnFoldersTests {
    private static let user: UInt32 = 65_534

    /// The words before a program that is to run as an ordinary user: root changes to one.
    private func words(_ program: FilePath, _ arguments: [String]) -> (FilePath, [String]) {
        guard geteuid() == 0 else { return (program, arguments) }
        let change = ["--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", program.display]
        return ("/usr/bin/setpriv", change + arguments)
    }

    private func give(_ path: FilePath) throws {
        guard geteuid() == 0 else { return }
        try systemCall("chown", on: path.display) { path.withCString { chown($0, Self.user, Self.user) } }
    }

    @Test(
        "the daemon runs and is controlled without an option and without a permission error",
        arguments: [false, true])
    func smallest(hasRuntimeFolder: Bool) async throws {
        let home = TemporaryFolder()
        for name: FilePath in ["drop", "out", "run", ".config/sluice"] {
            try Files.makeFolders(home.path.appending(name), mode: 0o755)
        }
        try home.write(
            ".config/sluice/sluice.yaml",
            Array(
                """
                version: 1
                folders:
                  - {name: camera, path: \(home.path.display)/drop, upload_to: [disk]}
                destinations:
                  disk: {type: directory, path: \(home.path.display)/out, mount: /}
                """.utf8))
        let names: [FilePath] = ["drop", "out", "run", ".config", ".config/sluice", ".config/sluice/sluice.yaml"]
        for path in [home.path] + names.map({ home.path.appending($0) }) { try give(path) }
        var environment = ["HOME": home.path.display]
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SLUICE_CONFIG"] { environment[name] = "" }
        if hasRuntimeFolder { environment["XDG_RUNTIME_DIR"] = "\(home.path.display)/run" }
        let logs = TemporaryFolder()
        func start(_ name: FilePath, _ arguments: [String]) throws -> Child {
            let (program, words) = words(try Setting.binary(), arguments)
            return try Child(
                program, words, environment: environment, output: logs.path.appending(name),
                errors: logs.path.appending(FilePath("\(name.display).err")))
        }
        let daemon = try start("daemon", ["run"])
        try await eventually("a client without an option finds the daemon: \((try? daemon.standardError()) ?? "")") {
            let status = try start("status", ["status"])
            return try await status.end(within: .seconds(20)) == .status(0)
        }
        // Complete before the daemon can see it.
        try give(try home.write("a.mp4", noise(1000)))
        try Files.rename(home.path.appending("a.mp4"), to: home.path.appending("drop/a.mp4"))
        let arrived = home.path.appending("out/camera/a.mp4")
        try await eventually("the file has arrived: \((try? daemon.standardError()) ?? "")") {
            try FileStatus.ifPresent(at: arrived) != nil
        }
        let state = home.path.appending(".local/state/sluice")
        #expect(try FileStatus.ifPresent(at: state.appending("staging"))?.isDirectory == true)
        let socket = (hasRuntimeFolder ? home.path.appending("run/sluice") : state).appending("control.sock")
        #expect(try FileStatus.ifPresent(at: socket) != nil)
        daemon.send(SIGTERM)
        #expect(try await daemon.end(within: .seconds(20)) == .status(0))
        #expect(try !daemon.standardError().contains("denied"))
    }
}
