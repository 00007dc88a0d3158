internal import API
internal import Control
internal import Core
internal import Linux
internal import Store

/// The running daemon, as far as it answers. A report ends in bounded time, whatever the daemon does.
struct ReportedDaemon: Sendable {
    /// A part of the report, or the reason why it is not there.
    struct Part<Value: Sendable>: Sendable {
        var value: Value?
        var why: [String] = []
    }

    let client: ControlClient
    let status: StatusView?
    private let error: (any Error)?
    /// The end of the time for all parts together.
    private let deadline: ContinuousClock.Instant

    private static let patience: Duration = .seconds(10)

    init(_ client: ControlClient) async {
        self.client = client
        do {
            status = try await awaiting(atMost: Self.patience) { try await client.status() }
            error = nil
        } catch {
            status = nil
            self.error = error
        }
        deadline = .now + .seconds(20)
    }

    func part<Value: Sendable>(
        _ work: @escaping @Sendable (ControlClient, StatusView) async throws -> Value
    ) async -> Part<Value> {
        guard let status else { return Part(why: ["not known, because the daemon does not answer: see Status"]) }
        let limit = min(Self.patience, deadline - .now)
        guard limit > .zero else { return Part(why: ["left out, because the daemon took too long to answer"]) }
        let client = client
        do {
            return Part(value: try await awaiting(atMost: limit) { try await work(client, status) })
        } catch { return Part(why: ["not known: \(error)"]) }
    }

    /// Why nothing is known of the daemon, and what to do; `nil` where it answers.
    func obstacle(_ places: ReportPlaces) -> [String]? {
        guard let error else { return nil }
        var lines: [String]
        switch error {
        case is TimeLimitError:
            lines = ["the daemon accepts connections on \(client.socket.display) and does not answer: \(error)"]
        case let error as ControlError: lines = ["\(error)", error.remedy]
        default: lines = ["\(error)"]
        }
        if let origin = places.origin { lines.append(origin) }
        if let pid = StateFiles.holder(of: places.state) {
            lines.append("pid \(pid) has the state folder \(places.state.display)" + (Self.condition(of: pid) ?? ""))
        }
        return lines
    }

    /// The state of a process (proc_pid_stat(5)).
    private static func condition(of pid: Int32) -> String? {
        guard let text = try? Files.read(FilePath("/proc/\(pid)/stat"), limit: 4096) else { return nil }
        // The name is in brackets, and may have some.
        let state = String(decoding: text, as: UTF8.self).split(separator: ")").last?.split(separator: " ").first
        return switch state {
        case "T", "t": ": it is stopped by a signal or a debugger; `kill -CONT \(pid)` continues it"
        case "D": ": it waits for a disk"
        case "Z": ": it has ended, and its parent has not noticed"
        default: nil
        }
    }
}
