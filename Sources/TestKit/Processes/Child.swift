package import Core
internal import Glibc
package import Linux
internal import Synchronization

/// A program that a test started: its output, its end, and a guarantee that it does not outlive the test.
///
/// When the last reference is released, the process is killed and waited for. When this process ends before that, the
/// kernel kills it. Its environment is small and the same everywhere: the caller's variables, and the few without which
/// no program starts.
package final class Child: Sendable {
    package enum Ending: Hashable, Sendable { case status(Int32), signal(Int32) }

    package let pid: Int32
    /// The file of its standard output and standard error; both are appended to.
    package let output: FilePath
    package let errors: FilePath
    /// The kernel's figures for it and its own children, once it has ended.
    package struct Cost: Hashable, Sendable {
        /// Time on all cores, in the program and in the kernel for it.
        package var processor: Duration
        /// The most memory ever resident, in bytes.
        package var residentPeak: Int64
    }
    private let spent = Mutex<Cost?>(nil)

    /// `nil` while it runs. Changed together with the wait, so that a pid is never signalled after it was released.
    private let ending: Mutex<Ending?>

    /// - Parameters:
    ///   - program: An absolute path.
    ///   - arguments: Without the program's own name.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String: String] = [:], output: FilePath,
        errors: FilePath
    ) throws(SystemError) {
        self.output = output
        self.errors = errors
        let variables = Self.inherited.merging(environment) { _, given in given }
        pid = try Starter.start(
            program, arguments, environment: variables.map { "\($0.key)=\($0.value)" }, output: output, errors: errors)
        ending = Mutex(nil)
    }

    deinit { end(with: SIGKILL) }

    /// Sends a signal. Does nothing when the process has ended.
    package func send(_ signal: Int32) {
        ending.withLock { if poll(&$0) == nil { kill(pid, signal) } }
    }

    /// Stops all threads with SIGSTOP, and returns when they have stopped: the signal alone returns earlier, and a thread
    /// that is woken meanwhile still runs. SIGCONT continues them.
    ///
    /// - Throws: ``Overdue``; `SystemError` when the process has ended.
    package func stop() async throws {
        send(SIGSTOP)
        let tasks = FilePath("/proc/\(pid)/task")
        try await eventually("all threads have stopped", every: .milliseconds(1)) {
            try Files.names(in: tasks).allSatisfy { task in
                // "1234 (name) T …": the name may contain anything (proc_pid_stat(5)).
                let text = try Files.read(tasks.appending(task).appending("stat"))
                guard let end = text.lastIndex(of: UInt8(ascii: ")")), text.count > end + 2 else { return false }
                return text[end + 2] == UInt8(ascii: "T")
            }
        }
    }

    /// Sends a signal and returns when the process is gone.
    @discardableResult
    package func end(with signal: Int32) -> Ending {
        ending.withLock { ending in
            if let over = poll(&ending) { return over }
            kill(pid, signal)
            return poll(&ending, waiting: true) ?? .signal(signal)
        }
    }

    /// How it ended, if it has.
    package var ended: Ending? { ending.withLock { poll(&$0) } }

    /// Waits until it ends by itself, on the caller's thread: for short programs.
    package func wait() -> Ending { ending.withLock { poll(&$0, waiting: true) ?? .signal(0) } }

    /// The resources that it used, if it has ended.
    package var cost: Cost? { ended == nil ? nil : spent.withLock { $0 } }

    /// Waits until it ends by itself.
    ///
    /// - Throws: ``Overdue`` with the last lines of its standard error, so that the report of a failure shows its
    ///   state.
    package func end(within limit: Duration) async throws -> Ending {
        do {
            return try await eventually("process \(pid) ends", within: limit) { self.ended }
        } catch let overdue as Overdue {
            throw Overdue(
                what: "\(overdue.what), which said: …\(try standardError().suffix(3000))", limit: overdue.limit)
        }
    }

    /// Its output so far.
    package func standardOutput() throws -> String {
        String(decoding: try Files.read(output, limit: 64 << 20), as: UTF8.self)
    }
    package func standardError() throws -> String {
        String(decoding: try Files.read(errors, limit: 64 << 20), as: UTF8.self)
    }

    /// Waits for a line on standard output that begins with `start`, and returns what follows it.
    package func line(after start: String, within limit: Duration = .seconds(20)) async throws -> String {
        try await eventually("process \(pid) prints “\(start)”", within: limit) {
            // The last piece has no line feed yet, so it may be half of a line.
            let lines = try self.standardOutput().split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            if let line = lines.last(where: { $0.hasPrefix(start) }) { return String(line.dropFirst(start.count)) }
            try self.requireRunning()
            return nil
        }
    }

    /// - Throws: ``Ended`` when it has ended: for waits that make sense only while it runs.
    package func requireRunning() throws {
        if let over = ended { throw Ended(how: over, errors: try standardError()) }
    }

    /// Thrown when the process ended during a wait for something else.
    package struct Ended: Error, Sendable, CustomStringConvertible {
        package let how: Ending
        package let errors: String
        package var description: String { "ended with \(how) and said: \(errors.suffix(2000))" }
    }

    /// Asks the kernel, and reaps the zombie when there is one. The caller holds the lock.
    @discardableResult
    private func poll(_ ending: inout Ending?, waiting: Bool = false) -> Ending? {
        if ending != nil { return ending }
        var status: Int32 = 0
        var got: pid_t
        var usage = rusage()
        repeat { got = wait4(pid, &status, waiting ? 0 : WNOHANG, &usage) } while got == -1 && errno == EINTR
        if got == pid {
            let times = [usage.ru_utime, usage.ru_stime]
            let cost = Cost(
                processor: times.reduce(.zero) { $0 + .seconds($1.tv_sec) + .microseconds($1.tv_usec) },
                residentPeak: Int64(usage.ru_maxrss) * 1024)
            spent.withLock { $0 = cost }
            // wait(2): the low seven bits are the signal, the next byte is the exit status.
            ending = status & 0x7F == 0 ? .status(status >> 8 & 0xFF) : .signal(status & 0x7F)
        }
        return ending
    }

    private static var inherited: [String: String] {
        var kept: [String: String] = [:]
        for name in ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "TSAN_OPTIONS", "ASAN_OPTIONS"] {
            if let value = getenv(name) { kept[name] = String(cString: value) }
        }
        return kept
    }
}
