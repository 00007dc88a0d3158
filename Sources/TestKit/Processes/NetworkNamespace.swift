internal import CLinux
package import Core
internal import Dispatch
internal import Glibc
package import Linux
internal import Synchronization

/// A separate network for a test, in which interfaces appear and vanish, cables are pulled and routes change, without
/// any effect on other networks. Only root may have one.
///
/// A network belongs to a thread here: one that stays, and runs all work in that network. A socket stays in the network
/// in which it was made, whichever thread uses it. When the last reference is released, the thread ends, and with it
/// everything in the network.
package final class NetworkNamespace: Sendable {
    private let worker: Workers<@Sendable () -> Void>
    private let folder = TemporaryFolder()
    /// For `nsenter --net=`: programs that are started this way run in it.
    package let path: FilePath

    /// Whether this process may have one, and `ip` is installed.
    package static let isPossible: Bool = {
        do {
            try NetworkNamespace().ip("link", "set", "lo", "up")
            return true
        } catch { return false }
    }()

    /// The reason that a test which needs one gives when it is skipped.
    package static let need = "a network of its own needs root and ip (package iproute2): sudo make test"

    package init() throws(SystemError) {
        worker = Workers("network", most: 1) { $0() }
        try worker.begin()
        let result = Mutex<Result<pid_t, SystemError>>(.success(0))
        let done = DispatchSemaphore(value: 0)
        worker.add {
            let made = Result { () throws(SystemError) in
                pid_t(try systemCall("unshare", on: "network") { sluice_leave_network() })
            }
            result.withLock { $0 = made }
            done.signal()
        }
        done.wait()
        do { path = FilePath("/proc/\(getpid())/task/\(try result.withLock { $0 }.get())/ns/net") } catch {
            path = ""
            worker.close()
            throw error
        }
    }

    deinit { worker.close() }

    /// Runs `body` in the network, and waits for it.
    package func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
        let result = Mutex<Result<R, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        worker.add {
            let made = Result { try body() }
            result.withLock { $0 = made }
            done.signal()
        }
        done.wait()
        guard let made = result.withLock({ $0 }) else { throw Refused(words: [], message: "it did not run") }
        return try made.get()
    }

    /// Runs `ip` in it (ip(8)).
    package func ip(_ words: String...) throws { try run(words) }

    /// The same for a list of words.
    package func run(_ words: [String]) throws {
        let (output, errors) = (folder.path.appending("output"), folder.path.appending("errors"))
        let status = try run {
            let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
            let pid = try Starter.spawn(["env", "ip"] + words, environment, output, errors)
            var status: Int32 = 0
            try systemCall("waitpid", on: "ip") { waitpid(pid, &status, 0) }
            return status
        }
        guard status == 0 else {
            throw Refused(words: words, message: String(decoding: try Files.read(errors), as: UTF8.self))
        }
    }

    /// Adds two interfaces connected by a cable: packets sent into one come out of the other. Both are in this network,
    /// or the second is in another one.
    package func addCable(_ one: String, to network: NetworkNamespace? = nil, _ other: String) throws {
        try ip("link", "add", one, "type", "veth", "peer", "name", other)
        if let network { try ip("link", "set", other, "netns", network.path.display) }
        try ip("link", "set", one, "up")
        try (network ?? self).ip("link", "set", other, "up")
    }

    /// Starts a program in it.
    package func start(
        _ program: FilePath, _ arguments: [String], environment: [String: String] = [:], output: FilePath,
        errors: FilePath
    ) throws -> Child {
        // It becomes the program: the process is the same.
        try Child(
            "/usr/bin/nsenter", ["--net=\(path.display)", "--", program.display] + arguments, environment: environment,
            output: output, errors: errors)
    }

    package struct Refused: Error, Sendable, CustomStringConvertible {
        package let words: [String]
        package let message: String
        package var description: String { "ip \(words.joined(separator: " ")): \(message)" }
    }
}
