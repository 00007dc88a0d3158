import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

/// A running ``NetworkManagerEvents``, with its reports.
final class Listening: Sendable {
    let events: NetworkManagerEvents
    private let heard = Received()
    private let task: Task<Void, any Error>

    private final class Received: Sendable {
        let reports = Mutex<[NetworkReport]>([])
        let thread = Atomic<Int32>(0)
    }

    init(
        _ address: String, backoff: Backoff = Backoff(first: .milliseconds(20), ceiling: .milliseconds(200)),
        timeout: Duration = .seconds(60), listsWiFi: Bool = false
    ) throws {
        let (events, heard) = (
            try NetworkManagerEvents(address: address, backoff: backoff, timeout: timeout, listsWiFi: listsWiFi),
            heard
        )
        self.events = events
        task = Task {
            try await events.run { report in
                heard.thread.store(Self.current, ordering: .relaxed)
                heard.reports.withLock { $0.append(report) }
            }
        }
    }

    /// The number of the calling thread, from `PID/task/NUMBER`.
    private static var current: Int32 {
        Files.linkTarget("/proc/thread-self").flatMap { Int32($0.name.display) } ?? 0
    }

    deinit { events.stop() }

    /// The last report.
    var report: NetworkReport? { heard.reports.withLock { $0.last } }
    var count: Int { heard.reports.withLock { $0.count } }
    /// The listening thread, once it has made a report.
    var thread: Int32 { heard.thread.load(ordering: .relaxed) }

    /// Waits until the last report matches.
    @discardableResult
    func until(_ what: String, _ holds: @escaping (NetworkReport) -> Bool) async throws -> NetworkReport {
        do {
            return try await eventually(what) { self.report.flatMap { holds($0) ? $0 : nil } }
        } catch {
            Issue.record("the last report: \(String(describing: report))")
            throw error
        }
    }

    /// Waits until NetworkManager has this opinion about an interface.
    @discardableResult
    func until(_ interface: String, is metered: NetworkReport.Metered) async throws -> NetworkReport {
        try await until("\(interface) is \(metered)") {
            $0.networkManager.isRunning && $0.networkManager.devices[interface]?.metered == metered
        }
    }

    /// Returns when the task that it ran in was cancelled, and it has ended.
    func cancel() async throws {
        task.cancel()
        try await task.value
    }

    /// Returns when it has ended.
    func stop() async throws {
        events.stop()
        try await task.value
    }
}
