import Shell
import Synchronization

/// A console that keeps its output.
final class Screen: Sendable {
    private let kept = Mutex<(out: [UInt8], err: [UInt8])>(([], []))
    /// The number of writes after which the reader has closed the output.
    private let patience: Mutex<Int>

    /// Columns and rows, once a person has changed the size of the window.
    let resized = Mutex<(width: Int, height: Int)?>(nil)

    init(patience: Int = .max) { self.patience = Mutex(patience) }

    var output: String { kept.withLock { String(decoding: $0.out, as: UTF8.self) } }
    var errors: String { kept.withLock { String(decoding: $0.err, as: UTF8.self) } }

    func console(
        width: Int = 120, colour: Bool = false, isTerminal: Bool? = nil, environment: [String: String] = [:]
    ) -> Console {
        Console(
            isTerminal: isTerminal ?? colour, size: { self.resized.withLock { $0 } ?? (width, .max) }, colour: colour,
            environment: { environment[$0] }
        ) { bytes, isError in
            let isRead = self.patience.withLock { left in
                left -= 1
                return left >= 0
            }
            if isRead { self.kept.withLock { if isError { $0.err += bytes } else { $0.out += bytes } } }
            return isRead
        }
    }
}
