internal import Core
internal import Dispatch
internal import Glibc
internal import Linux
internal import Synchronization

/// Starts programs that the kernel ends together with this process, however that ends: a test that traps, or a run that
/// is killed, runs no `deinit`.
///
/// `setpriv` requests it (`PR_SET_PDEATHSIG`, prctl(2)) and becomes the program. The kernel watches the thread that
/// started the child, and a test runner's threads end at any time; so one permanent thread starts all children.
final class Starter: Sendable {
    private static let shared = Result { () throws(SystemError) in try Starter() }

    private let orders = Mutex<[@Sendable () -> Void]>([])
    private let ordered = DispatchSemaphore(value: 0)

    private init() throws(SystemError) {
        try startThread("starter") {
            while true {
                self.ordered.wait()
                self.orders.withLock { $0.removeFirst() }()
            }
        }
    }

    /// - Parameters:
    ///   - program: An absolute path. If it does not exist, the child ends with status 127 and a message.
    ///   - arguments: Without the program's own name.
    ///   - environment: All of it, `NAME=value`.
    /// - Returns: The number of the process, which the caller has to wait for.
    static func start(
        _ program: FilePath, _ arguments: [String], environment: [String], output: FilePath, errors: FilePath
    ) throws(SystemError) -> pid_t {
        let starter = try shared.get()
        let words = ["setpriv", "--pdeathsig", "KILL", "--", program.display] + arguments
        let done = DispatchSemaphore(value: 0)
        let result = Mutex<Result<pid_t, SystemError>>(.success(0))
        starter.orders.withLock { orders in
            orders.append {
                let started = Result { () throws(SystemError) in try Self.spawn(words, environment, output, errors) }
                result.withLock { $0 = started }
                done.signal()
            }
        }
        starter.ordered.signal()
        done.wait()
        return try result.withLock { $0 }.get()
    }

    /// Starts it from this thread, and so in this thread's network. The caller must end it.
    static func spawn(
        _ words: [String], _ environment: [String], _ output: FilePath, _ errors: FilePath
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        for (number, path) in [(1, output), (2, errors)] {
            path.withCString {
                _ = posix_spawn_file_actions_addopen(&actions, Int32(number), $0, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            }
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A test runner may block or ignore signals; its children begin with none blocked and all at their default.
        var set = sigset_t()
        sigemptyset(&set)
        posix_spawnattr_setsigmask(&attributes, &set)
        sigfillset(&set)
        posix_spawnattr_setsigdefault(&attributes, &set)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, &variables)
        if code != 0 { throw SystemError(call: "posix_spawn", subject: words[0], code: code) }
        return pid
    }
}
