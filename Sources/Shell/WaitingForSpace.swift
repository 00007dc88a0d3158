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

/// Starts the daemon, and waits while the only problem is missing space.
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
                let missing: MissingSpace
                do {
                    let daemon = try await start()
                    if !reason.text.isEmpty { log.notice("there is enough disk space: the daemon starts") }
                    await server?.stop()
                    return daemon
                } catch {
                    guard let found = MissingSpace(error, settings) else { throw startError(error, settings) }
                    missing = found
                }
                if let last, clocks.monotonic() >= last {
                    throw CommandError(
                        .notNow, missing.text, remedy: "Free space on the disk of \(missing.folder.display).")
                }
                let isNew = reason.text.isEmpty
                reason.text = missing.text
                if isNew {
                    log.error("not enough disk space to start: the daemon waits for it", ["reason": missing.text])
                    server = await listen(reason)
                }
                // Other units must not wait for the disk.
                if maxWait == nil { notify.ready("waiting for disk space: \(missing.text)") }
                // Each try ends here, or the service manager learns that it hangs.
                if notify.watchdogTimeout != nil { notify.watchdog() }
                try await Alarms.shared.sleep(for: min(Self.pause, notify.watchdogTimeout.map { $0 / 2 } ?? Self.pause))
            }
        } catch {
            await server?.stop()
            throw error
        }
    }

    /// The reason for the wait, for clients that ask meanwhile.
    private final class Reason: Sendable {
        private let held = Mutex("")
        var text: String {
            get { held.withLock { $0 } }
            set { held.withLock { $0 = newValue } }
        }
    }

    /// - Returns: `nil` where no server can listen: the log and systemd get the reason all the same.
    private func listen(_ reason: Reason) async -> WaitingServer? {
        let socket = settings.control.socket
        do {
            return try await blocking {
                try WaitingServer(socket: socket) { "the daemon waits for disk space to start: \(reason.text)" }
            }
        } catch {
            log.warning("the waiting daemon cannot open its control socket", ["reason": "\(error)"])
            return nil
        }
    }
}
