internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// What `sluice init` does when it is ended by Ctrl-C, SIGTERM or the end of its terminal: it leaves nothing behind, or names
/// what stays.
final class SetupInterrupt: Sendable {
    private let console: Console
    private let state = Mutex(State())

    private struct State {
        var files: SetupFiles?
        /// Whether a test file may be at the destination now.
        var isTesting = false
    }

    init(_ console: Console) { self.console = console }

    func watch(_ signals: Signals?) { signals?.whenOneArrives { _ in self.end() } }

    func made(by files: SetupFiles) { state.withLock { $0.files = files } }

    /// - Parameter sendsFile: Whether `work` sends a test file.
    func testing(if sendsFile: Bool, _ work: () async throws -> Void) async throws {
        state.withLock { $0.isTesting = sendsFile }
        try await work()
        state.withLock { $0.isTesting = false }
    }

    /// On the thread that reads signals. A question may wait for its answer on another one, which holds a lock of the standard
    /// input: `exit` could wait for it.
    private func end() {
        let (files, isTesting) = state.withLock { ($0.files, $0.isTesting) }
        SecretPrompt.restoreTerminal()
        guard let files else {
            console.error("\nsluice: interrupted; nothing was written")
            _exit(ExitCode.failed.rawValue)
        }
        files.interrupt { isPublished in
            if isPublished {
                console.error(
                    "\nsluice: interrupted; \(files.path.display) is written, and its service may not be set up\n"
                        + "Look at it with `sluice config`, or remove it and run `sluice init` again.")
            } else {
                console.error("\nsluice: interrupted; nothing was written")
                if isTesting {
                    console.error("A test file, sluice-test-…, may still be at the destination: remove it there.")
                }
            }
            _exit(ExitCode.failed.rawValue)
        }
    }
}
