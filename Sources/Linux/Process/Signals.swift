internal import CLinux
internal import Glibc
internal import Synchronization

/// The signals that a long-running command handles, as a stream (signalfd(2)).
///
/// Made in `main` before any other thread exists: threads inherit the blocked signals, and a signal that one of them
/// does not block would end the process.
package final class Signals: Sendable {
    package enum Signal: CInt, Sendable {
        case hangUp = 1
        case interrupt = 2
        case terminate = 15
        /// The process goes on after it was stopped (`SIGCONT`); where it is not handled it does no more.
        case resume = 18
        /// The request to stop until the shell continues the program (`SIGTSTP`).
        case suspend = 20

        /// Those that end a program, or make it read its settings again.
        package static let usual: [Signal] = [.hangUp, .interrupt, .terminate]

        /// Does to this process what the signal does where it is not handled. Returns when the process goes on.
        package func obey() {
            var (own, before) = (sigset_t(), sigset_t())
            sigemptyset(&own)
            sigaddset(&own, rawValue)
            pthread_sigmask(SIG_UNBLOCK, &own, &before)
            // To this thread alone: it is delivered before this returns.
            raise(rawValue)
            pthread_sigmask(SIG_SETMASK, &before, nil)
        }
    }

    /// Each signal as it arrives. Signals of one kind that arrive before the first is read count once.
    package let stream: AsyncStream<Signal>
    private let arrived: AsyncStream<Signal>.Continuation
    private let descriptor: CInt
    private let onArrival = Mutex<(@Sendable (Signal) -> Void)?>(nil)

    /// Blocks the signals in this thread, and ignores `SIGPIPE`, `SIGXFSZ` and `SIGIO` (sent for a lost lease) in the
    /// process.
    ///
    /// - Parameters:
    ///   - signals: Those that are handled.
    ///   - keepsIgnored: Whether a signal that this process was started to ignore stays so, as by `nohup`.
    package init(_ signals: [Signal] = Signal.usual, keepsIgnored: Bool = false) throws(SystemError) {
        Self.ignoreNuisances()
        // signalfd(2) reports a blocked signal even where it is ignored.
        let numbers = signals.map(\.rawValue).filter { !keepsIgnored || sluice_ignores_signal($0) == 0 }
        descriptor = try systemCall("signalfd", on: "INT, TERM, HUP") {
            sluice_signalfd(numbers, CInt(numbers.count))
        }
        (stream, arrived) = AsyncStream.makeStream(of: Signal.self)
    }

    /// Runs `action` for each stop signal, on the thread that reads them, even while all tasks wait. It
    /// must not wait itself.
    package func whenAskedToStop(_ action: @escaping @Sendable () -> Void) {
        whenOneArrives { if $0 != .hangUp { action() } }
    }

    /// Like ``whenAskedToStop(_:)``, for each signal.
    package func whenOneArrives(_ action: @escaping @Sendable (Signal) -> Void) { onArrival.withLock { $0 = action } }

    /// Reads signals for as long as the process lives. The main thread runs this while others work.
    package func serve() -> Never {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            _ = poll(&ready, 1, -1)
            while case let number = sluice_next_signal(descriptor), number > 0 {
                guard let signal = Signal(rawValue: number) else { continue }
                onArrival.withLock { $0 }?(signal)
                arrived.yield(signal)
            }
        }
    }

    /// With these, a write to a vanished peer fails with an error and does not end the process.
    package static func ignoreNuisances() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGIO, SIG_IGN)
        // A write beyond the limit of file sizes (RLIMIT_FSIZE) then fails with an error (EFBIG).
        _ = signal(SIGXFSZ, SIG_IGN)
    }
}
