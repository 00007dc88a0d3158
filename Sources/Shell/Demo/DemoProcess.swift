internal import Core
internal import Linux
internal import Synchronization

/// A verb of this program in a process of its own. It is killed by ``kill()``, or by the kernel when this process ends
/// in any way.
final class DemoProcess: Sendable {
    private struct State {
        var firstLine: String?
        /// How it ended, with the end of its log.
        var ending: String?
    }

    private let state = Mutex(State())
    private let isKilled = StopFlag()

    /// - Parameters:
    ///   - words: The verb and its arguments.
    ///   - changed: Signalled when it prints a line, and when it ends.
    init(_ words: [FilePath], of program: FilePath, in folder: FilePath, changed: AsyncSignal) {
        let call = Program(
            words: [program.bytes] + words.map(\.bytes), environment: Program.plainEnvironment, folder: folder)
        // The kernel kills the program also when this thread ends, which runs it to its end.
        inBackground { [self] in
            let ending: String
            do throws(SystemError) {
                let result = try call.run(
                    within: .seconds(1 << 30),
                    line: { text, isComplaint in
                        guard !isComplaint else { return }
                        state.withLock { if $0.firstLine == nil { $0.firstLine = text } }
                        changed.signal()
                    }, isStopped: { isKilled.isSet })
                let how =
                    switch result.ending {
                    case .status(let status): "it ended with status \(status)"
                    case .signal(let signal): "signal \(signal) ended it"
                    case .overdue, .stopped: "it was killed"
                    }
                ending = "\(how), and wrote:\n\(result.errorOutput)"
            } catch { ending = "it cannot be started: \(error.reason)" }
            state.withLock { $0.ending = ending }
            changed.signal()
        }
    }

    /// The first line of its standard output.
    var firstLine: String? { state.withLock { $0.firstLine } }
    /// How it ended; `nil` while it runs.
    var ending: String? { state.withLock { $0.ending } }

    /// Sends SIGKILL. ``ending`` says when it is gone.
    func kill() { isKilled.set() }
}
