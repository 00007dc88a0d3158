internal import Config
internal import Core
internal import Linux
internal import Store

/// Reports when the state cannot be written, and when it can be written again.
struct StateHealth: Sendable {
    private let configuration: CurrentConfiguration
    private let clocks: any Clocks
    private let log: Log
    /// The report is the entry ``Alerts/state``. Its changes wake the loops that wait for the state.
    private let troubles: Alerts

    init(configuration: CurrentConfiguration, clocks: any Clocks, log: Log, troubles: Alerts) {
        self.configuration = configuration
        self.clocks = clocks
        self.log = log
        self.troubles = troubles
    }

    /// Whether the state could not be written, and no commit has succeeded since.
    var isFailing: Bool { troubles[Alerts.state] != nil }

    /// Reports that the state cannot be written: once, however many callers find it and however often. The scheduler
    /// then tries to write it every few seconds, and so does each caller with its own work; ``committed()`` clears the
    /// report.
    func failed(_ error: StoreError) {
        let path = configuration.settings.state
        var text = "the state in \(path.display) cannot be written: \(error.message)"
        let reason = text
        // A disk that does not report its free space may be the cause itself.
        if error.isFull, let space = try? Space(at: path) {
            text += "; \(space.free) bytes free, \(Store.neededSpace) needed"
        }
        guard troubles.set(Alerts.state, Hold(.disk, since: clocks.wall(), text: text), changeKey: reason) else {
            return
        }
        log.error("cannot write the state: intake, uploads and releases stop until it can be written", ["reason": text])
    }

    /// Reports an error of any kind, if it shows that the state cannot be written.
    func noteFailure(_ error: any Error) { if let error = error as? StoreError { failed(error) } }

    /// Called after each commit: the loops that wait for the state continue.
    func committed() {
        guard troubles.clear(Alerts.state) else { return }
        log.notice("state writable again")
    }
}
