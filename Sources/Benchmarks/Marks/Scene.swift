internal import API
internal import Control
internal import Core
internal import Daemon
internal import Glibc
internal import Linux
internal import TestKit
internal import Transport

/// A daemon of the release program, with a drop folder and one destination, as a user would have it.
final class Scene: Sendable {
    let home: TemporaryFolder
    let daemon: Child
    private let client: ControlClient
    private let transport = Transport()

    /// - Parameters:
    ///   - destination: The YAML after `target:`.
    ///   - quiet: The folder's `quiet_for`.
    ///   - folders: Subfolders of the drop folder, made before the start.
    ///   - policy: Additional keys of `policy`, in the form inside its braces.
    init(
        _ bench: Bench, home: TemporaryFolder = TemporaryFolder(), destination: String, concurrency: Int = 8,
        quiet: String = "50ms", folders: Int = 0, policy: String = ""
    ) async throws {
        self.home = home
        let root = home.path
        for name in ["drop", "beside", "state", "staging"] { try Files.makeFolders(root.appending(FilePath(name))) }
        for number in 0..<folders { try Files.makeFolders(root.appending(FilePath("drop/folder \(number)"))) }
        let text = """
            version: 1
            state: \(root.display)/state
            staging: {path: \(root.display)/staging, keep_free: 1 MB, memory: allow}
            folders:
              - {name: camera, path: \(root.display)/drop, settle: {quiet_for: \(quiet)}, upload_to: [target]}
            destinations:
              target: \(destination)
            policy: {concurrency: {total: \(concurrency), per_destination: \(concurrency)}\(policy)}
            control: {socket: \(root.display)/control.sock}

            """
        let config = root.appending("sluice.yaml")
        try Files.replace(config, with: Array(text.utf8))
        daemon = try Child(
            bench.sluice, ["run", "--config", config.display], output: root.appending("daemon.out"),
            errors: root.appending("daemon.err"))
        client = ControlClient(socket: root.appending("control.sock"), transport: transport)
        try await eventually("the daemon answers") { try await self.status().map { !$0.starting } ?? false }
    }

    deinit { daemon.end(with: SIGKILL) }

    var drop: FilePath { home.path.appending("drop") }

    /// `nil` while it does not answer yet.
    private func status() async throws -> StatusView? {
        try daemon.requireRunning()
        do { return try await client.status() } catch is ControlError { return nil }
    }

    /// Makes a finished file appear under its name at once, as a camera's does.
    func place(_ name: FilePath, size: Int64, seed: UInt64) throws {
        let aside = home.path.appending("beside").appending(name)
        try makeFile(aside, size: size, seed: seed)
        try Files.rename(aside, to: drop.appending(name))
    }

    /// Closes the connections of this side; no query works afterwards. The daemon closes an idle one, which is work.
    func hangUp() async { await transport.stop() }

    func pause() async throws { _ = try await client.pause(Selection(all: true)) }
    func resume() async throws { _ = try await client.resume(Selection(all: true)) }

    /// Waits until `count` uploads are completed.
    func completed(_ count: Int, within limit: Duration = .seconds(600)) async throws {
        try await eventually("\(count) uploads are completed", within: limit, every: .milliseconds(20)) {
            guard let status = try await self.status() else { return false }
            if status.counts.failed > 0 { throw WrongResult("\(status.counts.failed) uploads failed") }
            return status.counts.completed >= count
        }
    }

    /// Waits until copies of `bytes` are made.
    func staged(_ bytes: Int64) async throws {
        try await eventually("\(bytes) bytes are staged", within: .seconds(600), every: .milliseconds(50)) {
            try await self.status().map { $0.staging.used >= bytes } ?? false
        }
    }

    /// Waits until the daemon sleeps, and then for a minute.
    ///
    /// - Returns: Its wake-ups in that minute, the bytes that it wrote, and its usage at the end.
    func minuteAsleep() async throws -> (wakeUps: Int, written: Int64, usage: Usage) {
        await hangUp()
        var before = try usage()
        var isFirst = true
        // The remaining work, and the release of memory, end within seconds; then the minute begins.
        try await eventually("the daemon sleeps", within: .seconds(120), every: .seconds(15)) {
            let now = try self.usage()
            defer { (before, isFirst) = (now, false) }
            // The first check directly follows the initial reading.
            return !isFirst && now.switches == before.switches
        }
        try await Task.sleep(for: .seconds(60))
        let after = try usage()
        let wakeUps = after.switches.reduce(0) { $0 + $1.value - (before.switches[$1.key] ?? 0) }
        return (Int(wakeUps), Int64(after.writtenBytes - before.writtenBytes), after)
    }

    func processor() throws -> Double { try processorSeconds(of: daemon.pid) }
    func usage() throws -> Usage { try Usage(of: daemon.pid) }

    /// Makes the kernel reset the peak of resident memory (proc(5), `clear_refs`).
    func forgetPeak() throws {
        let file: FilePath = FilePath("/proc/\(daemon.pid)/clear_refs")
        let out = try Descriptor.open(file, for: .updating)
        try out.write(Array("5".utf8), named: file)
    }
}
