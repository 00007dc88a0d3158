package import Core

/// Why the daemon could not be asked.
package enum ControlError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No process listens on the socket; `reason` says how that was found.
    case notRunning(socket: FilePath, reason: String)
    /// The socket exists and does not allow this user; `group` may use it, where there is one.
    case denied(socket: FilePath, group: String? = nil)
    /// The daemon was there, and stopped; `last` is the number of its last event.
    case ended(last: Int64?)
    /// The answer was not in the form of our daemon; or it disconnected in the middle.
    case protocolFault(String)

    package var description: String {
        switch self {
        case .notRunning(let socket, let reason): "the daemon does not answer on \(socket.display): \(reason)"
        case .denied(let socket, _): "this user may not use \(socket.display)"
        case .ended: "the daemon stopped"
        case .protocolFault(let what): "the daemon did not answer as expected: \(what)"
        }
    }

    /// The command that starts the service with this socket; `nil` for a socket that no unit has. Units of the system have
    /// theirs in `/run/sluice` and `/run/sluice-NAME`, and the unit of a user in a folder `sluice` of that user.
    private static func start(_ socket: FilePath) -> String? {
        let folder = socket.parent
        guard socket.name == "control.sock", let name = folder.name.text else { return nil }
        guard folder.parent == "/run" else { return name == "sluice" ? "systemctl --user start sluice" : nil }
        if name == "sluice" { return "systemctl start sluice" }
        return name.hasPrefix("sluice-") ? "systemctl start sluice@\(name.dropFirst("sluice-".count))" : nil
    }

    /// Advice for the person.
    package var remedy: String {
        switch self {
        case .notRunning(let socket, _):
            "Start it with \(Self.start(socket).map { "`\($0)`" } ?? "its service") or `sluice run`; if it uses another socket, say "
                + "which with --socket or --config."
        case .ended(let last):
            last.map { "When it is back, `sluice events --since \($0)` continues from here." }
                ?? "Ask again when it is back."
        case .denied(_, let group?):
            "Become root, or join the group `\(group)`, which owns it: `sudo usermod -aG \(group) USER`, and log in again."
        case .denied(_, nil):
            "Become root, or run the daemon with a group that you are in, which then owns the socket; `control.socket` says where it is."
        case .protocolFault:
            "Look at the daemon's log; if the versions differ (`sluice version`, `sluice status`), restart it."
        }
    }
}
