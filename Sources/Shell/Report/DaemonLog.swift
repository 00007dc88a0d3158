internal import Config
internal import Core
internal import Glibc
internal import Linux

/// The end of the daemon's log, from wherever it goes.
struct DaemonLog: Sendable {
    /// The process of the daemon; `nil` where none is known.
    var pid: Int32?
    /// The unit of the service that reads the configuration.
    var unit: String
    /// The folders in which `journalctl` is looked up.
    var path = "/usr/bin:/bin"
    var proc: FilePath = "/proc"

    private static let count = 300
    /// Longer lines are cut.
    private static let longest = 4000

    func lines() async -> [String] {
        let target = pid.map { LogTarget(of: $0, in: proc) }
        var lines: [String] = []
        if let pid, let target { lines += await self.lines(of: target, pid) }
        lines += await journal(target)
        return lines
    }

    // MARK: Standard error

    private func lines(of target: LogTarget, _ pid: Int32) async -> [String] {
        let byHand = "add its end by hand"
        switch target {
        case .journal: return []
        case .file(let file):
            do {
                let place = proc.appending(FilePath("\(pid)/fd/2"))
                let text = try await SlowDisk(timeout: .seconds(5)).run { _ in try Self.end(of: place) }
                return ["the log goes to the file \(file.display); its last lines:"] + Self.last(text)
            } catch let error as SlowDisk.TimeoutError {
                return [
                    "the log goes to the file \(file.display), whose disk has not answered for \(error.timeout); \(byHand)"
                ]
            } catch { return ["the log goes to the file \(file.display): \(error); \(byHand)"] }
        case .pipe: return ["the log goes to a pipe (pid \(pid)): the program that reads it has the log; \(byHand)"]
        case .terminal(let terminal):
            return ["the log goes to the terminal \(terminal.display) (pid \(pid)); \(byHand)"]
        case .discarded: return ["the log goes to /dev/null (pid \(pid)): it is discarded"]
        case .other(let what): return ["the log goes to \(what.display) (pid \(pid)); \(byHand)"]
        case .unknown(let reason):
            return ["where the daemon writes its log cannot be seen (pid \(pid)): \(reason); run this as root"]
        }
    }

    /// At most the last 1 MiB of a file.
    private static func end(of path: FilePath) throws(SystemError) -> [UInt8] {
        let number = try systemCall("open", on: path.display) {
            path.withCString { Glibc.open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) }
        }
        let file = Descriptor(adopting: number)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var filled = 0
        try file.withNumber { number throws(SystemError) in
            let size = Int(lseek(number, 0, SEEK_END))
            let start = max(0, size - buffer.count)
            while filled < buffer.count {
                let count = try systemCall("read", on: path.display) {
                    let at = off_t(start + filled)
                    return buffer.withUnsafeMutableBytes {
                        pread(number, $0.baseAddress.map { $0 + filled }, $0.count - filled, at)
                    }
                }
                if count == 0 { break }
                filled += count
            }
        }
        return Array(buffer[..<filled])
    }

    static func last(_ text: some Sequence<UInt8>) -> [String] {
        let lines = String(decoding: Array(text), as: UTF8.self).split(separator: "\n").suffix(count)
        return lines.map { $0.utf8.count > longest ? $0.prefix(longest) + "…" : String($0) }
    }

    // MARK: The journal

    /// All runs of the service: after a crash the run before counts.
    private func journal(_ target: LogTarget?) async -> [String] {
        let unit = pid.flatMap { Self.unit(of: $0, in: proc, isOfJournal: target == .journal) } ?? unit
        // What systemd says about the unit is there too: how its process ended.
        let ofUnit = ["_SYSTEMD_UNIT", "UNIT", "_SYSTEMD_USER_UNIT", "USER_UNIT"].map { "\($0)=\(unit)" }
        let alternatives = [
            ("\(unit), all runs", Array(ofUnit.map { [$0] }.joined(separator: ["+"]))),
            ("all programs that call themselves sluice", ["SYSLOG_IDENTIFIER=sluice"]),
        ]
        for (what, matches) in alternatives {
            do {
                let found = Self.last(try await read(matches)).filter { $0 != "-- No entries --" }
                if !found.isEmpty { return ["the journal, \(what), its last lines:"] + found }
            } catch {
                return ["the journal cannot be read: journalctl: \(error)"] + (pid == nil ? [Self.elsewhere] : [])
            }
        }
        let nothing = "the journal has no line of \(unit)" + (geteuid() == 0 ? "" : Self.withoutRight)
        return [nothing] + (pid == nil ? [Self.elsewhere] : [])
    }

    private static let withoutRight =
        " that this user may read: run this as root, or join the group `systemd-journal`"

    private static var elsewhere: String {
        let marks: [FilePath] = ["/.dockerenv", "/run/.containerenv"]
        let isInContainer = marks.contains { $0.withCString { access($0, F_OK) } == 0 }
        return
            "a daemon that systemd does not start writes its log to standard error: into the file or the program that "
            + "its start names, or as a container to the log of that (`docker logs`, `podman logs`); add its end by hand"
            + (isInContainer ? " (this is a container)" : "")
    }

    private struct NoJournalError: Error, CustomStringConvertible {
        var description: String { "this machine has none" }
    }

    private func read(_ matches: [String]) async throws -> [UInt8] {
        guard let journalctl = Program.installed("journalctl", path: path) else {
            throw NoJournalError()
        }
        let words =
            ["--quiet", "--no-pager", "-o", "short-iso", "-n", "\(Self.count)"] + matches
        let program = Program(
            words: [journalctl.bytes] + words.map { Array($0.utf8) }, environment: ["PATH=\(path)", "LC_ALL=C.UTF-8"],
            folder: "/")
        return try await program.awaitOutput(atMost: 16 << 20, within: .seconds(8))
    }

    /// The unit of a process that systemd started: a process of a shell or of cron is in the unit of that.
    private static func unit(of pid: Int32, in proc: FilePath, isOfJournal: Bool) -> String? {
        let file = proc.appending(FilePath("\(pid)/cgroup"))
        guard let text = try? Files.read(file, limit: 1 << 16) else { return nil }
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
            guard let last = line.split(separator: "/").last, last.hasSuffix(".service") else { continue }
            if isOfJournal || last.hasPrefix("sluice") { return String(last) }
        }
        return nil
    }
}

/// Where a process writes its standard error.
enum LogTarget: Hashable, Sendable {
    case file(FilePath)
    /// A socket: systemd gives one of journald to its services.
    case journal
    case pipe
    case terminal(FilePath)
    case discarded
    case other(FilePath)
    case unknown(String)

    init(of pid: Int32, in proc: FilePath) {
        let link = proc.appending(FilePath("\(pid)/fd/2"))
        guard let target = Files.linkTarget(link) else {
            do throws(SystemError) {
                _ = try Files.names(in: link.parent)
                self = .unknown("it is closed")
            } catch { self = .unknown(error.reason) }
            return
        }
        let text = target.lossyText
        var status = stat()
        let isFile = link.withCString { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFREG
        let isTerminal = ["/dev/pts/", "/dev/tty", "/dev/console"].contains { text.hasPrefix($0) }
        self =
            switch true {
            case text.hasPrefix("pipe:"): .pipe
            case text.hasPrefix("socket:"): .journal
            case text == "/dev/null": .discarded
            case isTerminal: .terminal(target)
            case isFile: .file(target)
            default: .other(target)
            }
    }
}
