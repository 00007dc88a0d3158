internal import CLinux
package import Core
internal import Glibc

/// A program that is run and read to its end, and never outlives its caller: one call, on the calling thread.
///
/// No shell is used. Its standard input is ``input``, and then ends. It has a process group of its own, which is killed
/// as a whole, and the kernel kills the program when this process ends in any way.
package struct Program: Sendable {
    /// How it ended.
    package enum Ending: Hashable, Sendable {
        case status(Int32)
        case signal(Int32)
        /// Killed by us: the time was over, or the caller requested it.
        case overdue, stopped
    }

    package struct Result: Sendable {
        package var ending: Ending
        /// The end of its standard error, at most 4 KiB; invalid text is replaced.
        package var errorOutput: String
    }

    /// The program and its arguments, as bytes. A program without a slash is looked up in `PATH`.
    package var words: [[UInt8]]
    /// The whole environment, as `NAME=value`.
    package var environment: [String]
    /// The working directory.
    package var folder: FilePath
    /// Its standard input. A program that does not read it is not delayed.
    package var input: [UInt8]

    /// An open file that it has under the same number while it runs. The caller keeps it open.
    package var passedDescriptor: CInt?
    /// The user with whose rights alone it runs; `nil` for this process's own. Only root can change the user.
    package var user: ServiceUser?
    /// The part of the network, or the one file, to which it is held with all that it starts; `nil` for no such limit.
    package var confinement: Confinement?

    package init(
        words: [[UInt8]], environment: [String], folder: FilePath, input: [UInt8] = [],
        passedDescriptor: CInt? = nil, user: ServiceUser? = nil, confinement: Confinement? = nil
    ) {
        self.confinement = confinement
        self.passedDescriptor = passedDescriptor
        self.user = user
        self.input = input
        self.words = words
        self.environment = environment
        self.folder = folder
    }

    /// Variables that programs need to run; none of them may be a secret.
    package static let plainEnvironment: [String] = {
        let kept = ["PATH", "HOME", "USER", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "XDG_RUNTIME_DIR"]
        return kept.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
    }()

    /// The first program with that name in the folders of `PATH`; `nil` when there is none.
    package static func installed(
        _ name: FilePath, path: String? = getenv("PATH").map { String(cString: $0) }
    ) -> FilePath? {
        for folder in (path ?? "").split(separator: ":") where folder.hasPrefix("/") {
            let program = FilePath(String(folder)).appending(name)
            if program.withCString({ access($0, X_OK) }) == 0 { return program }
        }
        return nil
    }

    /// Time between two calls of `isStopped` while the program prints nothing.
    private static let stopCheckInterval: Duration = .milliseconds(100)

    /// Runs it to its end.
    ///
    /// - Parameters:
    ///   - limit: Time limit.
    ///   - line: Called with each line of its standard output and standard error; parts of lines after a carriage
    ///     return count as lines.
    ///   - isStopped: Called several times a second.
    /// - Throws: The error when it cannot be started.
    package func run(
        within limit: Duration, line: (_ text: String, _ isComplaint: Bool) -> Void, isStopped: () -> Bool
    ) throws(SystemError) -> Result {
        var (printed, complained) = (Lines(), Lines())
        let ending = try run(
            within: limit, output: { printed.feed($0) { line($0, false) } },
            errors: { complained.feed($0) { line($0, true) } }, isStopped: isStopped)
        complained.finish { line($0, true) }
        return Result(ending: ending, errorOutput: String(decoding: complained.last, as: UTF8.self))
    }

    /// Why a program's answer cannot be used, as a text that follows its name.
    package struct Problem: Error, CustomStringConvertible {
        package let description: String
        /// How it ended; `nil` if it was not started.
        package var ending: Ending?
    }

    /// Runs it to its end, and returns its standard output. Its standard error is discarded, since it may quote a
    /// secret.
    ///
    /// - Parameters:
    ///   - most: Maximum size of the output in bytes.
    ///   - limit: Time limit.
    ///   - isStopped: Called several times a second; when it returns true, the program is killed.
    package func collectOutput(
        atMost most: Int, within limit: Duration, isStopped: () -> Bool = { false }
    ) throws(Problem) -> [UInt8] {
        guard words.first?.isEmpty == false else { throw Problem(description: "no program is named") }
        var content: [UInt8] = []
        let ending: Ending
        do throws(SystemError) {
            ending = try run(
                within: limit, output: { if content.count <= most { content += $0 } }, errors: { _ in },
                isStopped: { content.count > most || isStopped() })
        } catch {
            throw Problem(description: "it cannot be started: \(error.reason)")
        }
        if content.count > most { throw Problem(description: "it printed more than \(most) bytes", ending: ending) }
        switch ending {
        case .status(0): return content
        case .status(let status): throw Problem(description: "it ended with status \(status)", ending: ending)
        case .signal(let signal): throw Problem(description: "it was ended by signal \(signal)", ending: ending)
        case .overdue, .stopped: throw Problem(description: "it did not end in time", ending: ending)
        }
    }

    private func run(
        within limit: Duration, output: (ArraySlice<UInt8>) -> Void, errors: (ArraySlice<UInt8>) -> Void,
        isStopped: () -> Bool
    ) throws(SystemError) -> Ending {
        let printing = try Pipe()
        let complaining = try Pipe()
        // Our writing ends are closed here: the pipes end when their last writers do.
        let pid = try start(try reads(), printing.writing, complaining.writing)
        var printed = Listener(pipe: printing.reading)
        var complained = Listener(pipe: complaining.reading)
        let deadline = ContinuousClock.now.advanced(by: limit)
        var ended: CInt?
        var killed: Ending?
        while ended == nil {
            if killed == nil {
                if isStopped() { killed = .stopped } else if ContinuousClock.now >= deadline { killed = .overdue }
                if killed != nil { kill(-pid, SIGKILL) }
            }
            Listener.wait(for: printed, complained, atMost: min(Self.stopCheckInterval, deadline - ContinuousClock.now))
            printed.drain(output)
            complained.drain(errors)
            var status: CInt = 0
            let got = waitpid(pid, &status, WNOHANG)
            if got == pid || got == -1 && errno != EINTR { ended = status }
        }
        // Other processes in its group are killed with it, and with them the last writers of the pipes.
        kill(-pid, SIGKILL)
        printed.drain(output)
        complained.drain(errors)
        let status = ended ?? 0
        // wait(2): the low seven bits are the signal, the next byte is the exit status.
        return killed ?? (status & 0x7F != 0 ? .signal(status & 0x7F) : .status(status >> 8 & 0xFF))
    }

    /// The input is in memory and not in a pipe, which would stay full if the program does not read.
    private func reads() throws(SystemError) -> Descriptor {
        if input.isEmpty { return try Descriptor.open("/dev/null", for: .reading) }
        let number = try systemCall("memfd_create", on: "standard input") {
            input.withUnsafeBytes { sluice_input($0.baseAddress, $0.count) }
        }
        return Descriptor(adopting: number)
    }

    private func start(
        _ input: consuming Descriptor, _ output: consuming Descriptor, _ errors: consuming Descriptor
    ) throws(SystemError) -> pid_t {
        let texts = (words.map { $0 + [0] }, environment.map { Array($0.utf8) + [0] })
        let pointers = (texts.0.map(Self.copied), texts.1.map(Self.copied))
        defer { for pointer in pointers.0 + pointers.1 { free(pointer) } }
        let lists = (
            pointers.0.map { UnsafePointer($0) } + [nil], pointers.1.map { UnsafePointer($0) } + [nil]
        )
        return try input.withNumber { input throws(SystemError) in
            try output.withNumber { output throws(SystemError) in
                try errors.withNumber { errors throws(SystemError) in
                    try systemCall("start", on: FilePath(bytes: words.first ?? []).display) {
                        folder.withCString { folder in
                            lists.0.withUnsafeBufferPointer { words in
                                lists.1.withUnsafeBufferPointer { variables in
                                    Self.withUser(user) { user in
                                        Confinement.withPointer(confinement) { confinement in
                                            sluice_spawn(
                                                words.baseAddress, variables.baseAddress, folder, input, output,
                                                errors, passedDescriptor ?? -1, user, confinement)
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    private static func withUser<R>(_ user: ServiceUser?, _ body: (UnsafePointer<sluice_user>?) -> R) -> R {
        guard let user else { return body(nil) }
        return user.groups.withUnsafeBufferPointer { groups in
            var given = sluice_user(
                user: user.user, group: user.group, groups: groups.baseAddress, count: groups.count,
                keeps_lease: user.keepsLease ? 1 : 0)
            return body(&given)
        }
    }

    private static func copied(_ text: [UInt8]) -> UnsafeMutablePointer<CChar>? {
        text.withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { strdup($0.assumingMemoryBound(to: CChar.self)) }
        }
    }
}

private struct Pipe: ~Copyable {
    let reading: Descriptor
    let writing: Descriptor

    init() throws(SystemError) {
        var ends: [CInt] = [0, 0]
        try systemCall("pipe2", on: "a pipe") { sluice_pipe(&ends) }
        reading = Descriptor(adopting: ends[0])
        writing = Descriptor(adopting: ends[1])
    }
}

/// Collects the output of a pipe.
private struct Listener: ~Copyable {
    let pipe: Descriptor
    private var isOver = false

    init(pipe: consuming Descriptor) { self.pipe = pipe }

    /// Waits until one of them has data. When both are over, only the program's end is awaited, which is near.
    static func wait(for a: borrowing Listener, _ b: borrowing Listener, atMost limit: Duration) {
        let limit = a.isOver && b.isOver ? .milliseconds(5) : limit
        a.pipe.withNumber { first in
            b.pipe.withNumber { second in
                // A pipe that has ended would always be ready: -1 leaves it out.
                var looks = [
                    pollfd(fd: a.isOver ? -1 : first, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: b.isOver ? -1 : second, events: Int16(POLLIN), revents: 0),
                ]
                _ = poll(&looks, 2, CInt(clamping: max(0, limit.inMilliseconds)))
            }
        }
    }

    mutating func drain(_ body: (ArraySlice<UInt8>) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        // A program that prints without end must not keep us from checking the clock.
        for _ in 0..<64 where !isOver {
            let got = pipe.withNumber { number in
                buffer.withUnsafeMutableBytes { read(number, $0.baseAddress, $0.count) }
            }
            if got < 0 {
                if errno == EINTR { continue }
                return
            }
            if got == 0 { isOver = true } else { body(buffer[..<got]) }
        }
    }
}

/// Splits pieces of output into lines. Its memory is bounded, regardless of the amount.
private struct Lines {
    private var line: [UInt8] = []
    /// The last 4 KiB.
    private(set) var last: [UInt8] = []

    private static let maxLine = 4096

    mutating func feed(_ bytes: ArraySlice<UInt8>, _ body: (String) -> Void) {
        last = (last + bytes).suffix(Self.maxLine)
        for byte in bytes {
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
                finish(body)
            } else if line.count < Self.maxLine {
                line.append(byte)
            }
        }
    }

    mutating func finish(_ body: (String) -> Void) {
        if !line.isEmpty { body(String(decoding: line, as: UTF8.self)) }
        line.removeAll(keepingCapacity: true)
    }
}
