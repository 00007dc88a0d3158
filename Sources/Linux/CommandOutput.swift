internal import Core
internal import Glibc

/// What a program prints, taken without a shell.
package enum CommandOutput {
    package struct Problem: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }
    }

    /// Runs the program in a process group of its own, with nothing on standard input and its complaints thrown away
    /// (they may quote the secret). Waits for it on this thread.
    ///
    /// - Parameters:
    ///   - words: The program, looked up in `PATH` when it has no slash, and its arguments.
    ///   - environment: All of it, as `NAME=value`.
    ///   - limit: Bytes that it may print.
    ///   - patience: How long it may take; it is killed then, with everything in its group.
    package static func read(
        _ words: [String], _ environment: [String], limit: Int, _ patience: Duration
    ) throws -> [UInt8] {
        guard let program = words.first, !program.isEmpty else { throw Problem("no program is named") }
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw Problem("no pipe: \(String(cString: strerror(errno)))") }
        let output = Descriptor(adopting: ends[0])
        // Other children may be started at this very moment by other threads; theirs must not hold our pipe open.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let pid: pid_t
        do {
            // Ours goes with the scope: the pipe ends when the last writer, the child, is gone.
            let writing = Descriptor(adopting: ends[1])
            pid = try writing.withNumber { number throws(Problem) in try spawn(program, words, environment, number) }
        }
        let deadline = ContinuousClock.now.advanced(by: patience)
        var content: [UInt8] = []
        do {
            content = try drain(output, limit, deadline)
            try reap(pid, deadline)
        } catch {
            kill(-pid, SIGKILL)
            var status: CInt = 0
            while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
            throw error
        }
        return content
    }

    private static func drain(
        _ output: borrowing Descriptor, _ limit: Int, _ deadline: ContinuousClock.Instant
    ) throws -> [UInt8] {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let left = CInt(clamping: ContinuousClock.now.duration(to: deadline).inMilliseconds)
            if left <= 0 { throw Problem("it did not end in time") }
            let isReady = output.withNumber { number in
                var look = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
                return poll(&look, 1, left) > 0
            }
            guard isReady else { continue }
            let got = try output.read(into: &buffer, named: "pipe")
            if got == 0 { return content }
            content += buffer[..<got]
            if content.count > limit { throw Problem("it printed more than \(limit) bytes") }
        }
    }

    /// Waits for the end of a child that has closed its output; asks every few milliseconds, since it mostly is there.
    private static func reap(_ pid: pid_t, _ deadline: ContinuousClock.Instant) throws {
        var status: CInt = 0
        while true {
            let got = waitpid(pid, &status, WNOHANG)
            if got == pid { break }
            if got == -1 && errno != EINTR { throw Problem("its end could not be seen") }
            if ContinuousClock.now >= deadline { throw Problem("it did not end in time") }
            _ = poll(nil, 0, 5)
        }
        // wait(2): the low seven bits are the signal, the next byte is the exit status.
        if status & 0x7F != 0 { throw Problem("it was ended by signal \(status & 0x7F)") }
        if status >> 8 & 0xFF != 0 { throw Problem("it ended with status \(status >> 8 & 0xFF)") }
    }

    private static func spawn(
        _ program: String, _ words: [String], _ environment: [String], _ output: CInt
    ) throws(Problem) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var set = sigset_t()
        sigemptyset(&set)
        posix_spawnattr_setsigmask(&attributes, &set)
        sigfillset(&set)
        posix_spawnattr_setsigdefault(&attributes, &set)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, program, &actions, &attributes, &arguments, &variables)
        if code != 0 { throw Problem("it cannot be started: \(String(cString: strerror(code)))") }
        return pid
    }
}
