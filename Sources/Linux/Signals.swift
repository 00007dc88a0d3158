internal import CLinux
internal import Core
internal import Dispatch
internal import Glibc

/// The signals that a long-running verb answers, as a stream (signalfd(2)).
///
/// Made in `main` before any other thread exists: threads inherit what is blocked, and a signal that one of them does
/// not block would end the process.
package final class Signals: Sendable {
    package enum Signal: CInt, Sendable, CaseIterable {
        case hangUp = 1
        case interrupt = 2
        case terminate = 15
    }

    /// Each signal as it comes. Signals of one kind that come before the first is read count once.
    package let stream: AsyncStream<Signal>
    // Unsafe only in name: set once in `init`, and afterwards only cancelled, in `deinit`, which libdispatch allows from
    // any thread.
    private nonisolated(unsafe) let source: any DispatchSourceRead

    /// Blocks the signals in this thread, and ignores `SIGPIPE` and `SIGIO` (a lost lease is told by that) in the process.
    package init() throws(SystemError) {
        Self.ignoreNuisances()
        let numbers = Signal.allCases.map(\.rawValue)
        let descriptor = try systemCall("signalfd", on: "INT, TERM, HUP") {
            sluice_signalfd(numbers, CInt(numbers.count))
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: DispatchQueue(label: "signals"))
        let (stream, continuation) = AsyncStream.makeStream(of: Signal.self)
        source.setEventHandler {
            while true {
                let number = sluice_next_signal(descriptor)
                guard number > 0 else { return }
                if let signal = Signal(rawValue: number) { continuation.yield(signal) }
            }
        }
        source.setCancelHandler {
            _ = close(descriptor)
            continuation.finish()
        }
        source.activate()
        self.stream = stream
        self.source = source
    }

    deinit { source.cancel() }

    /// A peer that went away is an error of the call that writes to it, not the end of the process.
    package static func ignoreNuisances() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGIO, SIG_IGN)
    }
}
