internal import API
internal import Control

/// The exit status of the process, as in `sysexits.h` where one fits. The unit file relies on `usage` and `config`:
/// systemd does not restart a daemon whose configuration a person has to fix first.
package enum ExitCode: Int32, Sendable, CaseIterable {
    case ok = 0
    /// An error without a number of its own.
    case failed = 1
    case usage = 64
    /// The state of the upload, file, destination or database does not allow it.
    case conflict = 65
    case notFound = 66
    /// The daemon does not answer.
    case notRunning = 69
    /// Refused: by policy, for lack of permission or space, while the daemon starts, or because another process holds
    /// the state.
    case notNow = 75
    /// A destination or a hook failed, or the other end gave an invalid answer.
    case remote = 76
    case config = 78

    /// The explanation in `sluice help`.
    package var meaning: String {
        switch self {
        case .ok: "done"
        case .failed: "an error without a status of its own; the message describes it"
        case .usage: "the command line is wrong"
        case .conflict: "not possible for this upload, file, destination or database; the message says why"
        case .notFound: "nothing has that name, or several uploads match it"
        case .notRunning: "the daemon does not answer"
        case .notNow:
            "refused: by policy, for lack of permission or space, because the daemon is starting or stopping, or "
                + "because another process uses the state; after `run --once`: uploads wait or failed"
        case .remote: "a destination or a hook failed, or an answer was invalid"
        case .config: "the configuration, or something that it names, must be fixed"
        }
    }
}

/// The reason why a verb failed, for the person who typed it.
struct CommandError: Error, Sendable, CustomStringConvertible {
    var status: ExitCode
    /// Place and problem, one or more lines.
    var message: String
    /// Advice on how to fix it.
    var remedy: String?
    /// Whether it is printed unchanged: it begins with a place that editors understand.
    var isBare = false

    init(_ status: ExitCode, _ message: String, remedy: String? = nil) {
        self.status = status
        self.message = message
        self.remedy = remedy
    }

    var description: String { remedy.map { "\(message)\n\($0)" } ?? message }
}

extension ExitCode {
    init(_ refusal: Refusal.Code) {
        self =
            switch refusal {
            case .notFound, .ambiguous: .notFound
            case .conflict, .duplicate, .sourceMissing: .conflict
            case .badRequest: .usage
            case .unavailable, .forbidden, .noRoom: .notNow
            case .destination: .remote
            }
    }

    init(_ error: ControlError) {
        self =
            switch error {
            case .notRunning, .denied, .ended: .notRunning
            case .protocolFault: .remote
            }
    }
}
