internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Linux
internal import Store
internal import Synchronization

/// A start that found no space on the disk of the state or of staging. The start waits, as a running daemon does when
/// the disk fills up.
struct MissingSpace: Sendable {
    /// The message: of the same length and form as the hold of a running daemon.
    let text: String
    /// A folder on the disk.
    let folder: FilePath

    /// - Returns: `nil` for errors that more space would not fix.
    init?(_ error: any Error, _ settings: Settings) {
        let (what, reason): (String, String)
        switch error {
        case let unusable as UnusableStateError where unusable.isShortOfSpace:
            (what, folder, reason) = ("the state in ", settings.state, unusable.error.message)
        case let error as StoreError where error.isShortOfSpace(on: settings.state):
            (what, folder, reason) = ("the state in ", settings.state, error.message)
        case let error as SystemError where error.isFull && !error.isWatchLimit:
            let isStaging = error.subject.hasPrefix(settings.staging.path.display)
            (what, folder) = isStaging ? ("", settings.staging.path) : ("the state in ", settings.state)
            reason = "\(error)"
        default: return nil
        }
        // A disk that does not report its space may be the cause itself.
        let space = (try? Space(at: folder)).map {
            "; \($0.free) bytes free, \(Store.neededSpace) needed"
        }
        text = redacted(printable("\(what)\(folder.display) cannot be written: \(reason)" + (space ?? "")))
    }
}

/// Why the daemon waits before it starts.
private struct StartObstacle {
    /// For clients and the service manager.
    var text: String
    /// For the log: at the beginning and the end of the wait.
    var began: String
    var ended: String
    /// What the daemon waits for.
    var object: String
    var remedy: String?

    init(_ missing: MissingSpace) {
        text = missing.text
        began = "not enough disk space to start: the daemon waits for it"
        ended = "there is enough disk space: the daemon starts"
        object = "disk space"
        remedy = "Free space on the disk of \(missing.folder.display)."
    }

    /// Another process uses the state. The service manager would try again for ever, with lines in the log each time, and
    /// the other process may be a run that ends by itself.
    init(_ locked: StateLockedError) {
        text = printable("\(locked)")
        began = "another process uses the state folder: the daemon waits until it is free"
        ended = "the state folder is free: the daemon starts"
        object = "the state folder"
    }
}

/// Starts the daemon, and waits while the only problem is missing space or, in a service, another process with the state.
struct DelayedStart: Sendable {
    let settings: Settings
    let notify: Notify
    let log: Log
    /// Time limit of the wait; `nil` for none.
    let maxWait: Duration?
    /// Time between two tries.
    private static let pause: Duration = .seconds(5)

    /// - Throws: ``CommandError``; `CancellationError` when its task is cancelled while it waits.
    func callAsFunction(_ start: @Sendable () async throws -> Daemon) async throws -> Daemon {
        let clocks = SystemClocks()
        let last = maxWait.map { clocks.monotonic().advanced(by: $0) }
        let reason = Reason()
        var server: WaitingServer?
        do {
            while true {
                let obstacle: StartObstacle
                do {
                    let daemon = try await start()
                    if let ended = reason.obstacle?.ended { log.notice(ended) }
                    await server?.stop()
                    return daemon
                } catch {
                    guard let found = self.obstacle(error) else { throw startError(error, settings) }
                    obstacle = found
                }
                if let last, clocks.monotonic() >= last {
                    throw CommandError(.notNow, obstacle.text, remedy: obstacle.remedy)
                }
                let before = reason.obstacle
                reason.obstacle = obstacle
                if before?.began != obstacle.began { log.error(obstacle.began, ["reason": obstacle.text]) }
                if server == nil, before == nil { server = await listen(reason) }
                // Other units must not wait for it.
                if maxWait == nil { notify.ready("waiting for \(obstacle.object): \(obstacle.text)") }
                // Each try ends here, or the service manager learns that it hangs.
                if notify.watchdogTimeout != nil { notify.watchdog() }
                try await Alarms.shared.sleep(for: min(Self.pause, notify.watchdogTimeout.map { $0 / 2 } ?? Self.pause))
            }
        } catch {
            await server?.stop()
            throw error
        }
    }

    /// - Returns: `nil` for an error that ends the start. In a terminal and for a run that ends by itself that is also the use
    ///   of the state by another process: there the caller decides.
    private func obstacle(_ error: any Error) -> StartObstacle? {
        if let locked = error as? StateLockedError {
            return maxWait == nil && notify.isEnabled ? StartObstacle(locked) : nil
        }
        return MissingSpace(error, settings).map { StartObstacle($0) }
    }

    /// The reason for the wait, for clients that ask meanwhile.
    private final class Reason: Sendable {
        private let held = Mutex<StartObstacle?>(nil)
        var obstacle: StartObstacle? {
            get { held.withLock { $0 } }
            set { held.withLock { $0 = newValue } }
        }
    }

    /// - Returns: `nil` where no server can listen: the log and systemd get the reason all the same.
    private func listen(_ reason: Reason) async -> WaitingServer? {
        let socket = settings.control.socket
        do {
            return try await blocking {
                try WaitingServer(socket: socket) {
                    reason.obstacle.map { "to start, the daemon waits for \($0.object): \($0.text)" } ?? ""
                }
            }
        } catch {
            log.warning("the waiting daemon cannot open its control socket", ["reason": "\(error)"])
            return nil
        }
    }
}
