package import Core

/// A metric: its name in Prometheus, its meaning, and the labels of its values.
///
/// Labels never contain names of files: each label has as many values as the configuration has names, and no others.
/// `docs/operations.md` has the same table; a test compares the two.
package struct Metric: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable { case counter, gauge, histogram }

    package let name: String
    package let kind: Kind
    package let labels: [String]
    /// One line, without a full stop.
    package let help: String

    private init(_ name: String, _ kind: Kind, _ labels: [String] = [], _ help: String) {
        self.name = "sluice_" + name
        self.kind = kind
        self.labels = labels
        self.help = help
    }

    package static func == (a: Metric, b: Metric) -> Bool { a.name == b.name }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }

    // MARK: Since the start

    package static let files = Metric(
        "files_detected_total", .counter, ["folder"], "Files found for upload, including new versions of known files")
    package static let uploads = Metric(
        "uploads_total", .counter, ["destination", "result"],
        "Uploads that ended; result is completed, duplicate (not sent, because its content was there), failed, cancelled, expired or superseded (another destination of first_of has the file)"
    )
    package static let uploadBytes = Metric(
        "upload_bytes_total", .counter, ["destination"], "Bytes of files that were sent and verified")
    package static let sentBytes = Metric(
        "network_sent_bytes_total", .counter, ["destination", "network"],
        "Bytes sent, including headers, DNS queries and repeated bytes; network is local, unmetered, metered, unknown, or any if no rule depends on it"
    )
    package static let receivedBytes = Metric(
        "network_received_bytes_total", .counter, ["destination", "network"],
        "Bytes received, including headers, acknowledgements and handshakes; network as for bytes sent")
    package static let failures = Metric(
        "attempts_failed_total", .counter, ["destination", "reason"],
        "Attempts that failed, including those of uploads that succeeded later; reason is the class of the failure")
    package static let verifyFailures = Metric(
        "verify_failures_total", .counter, ["destination"],
        "Attempts that failed because the destination received different bytes than were sent")
    package static let durations = Metric(
        "upload_duration_seconds", .histogram, ["destination"],
        "Duration of the attempts that completed uploads")
    package static let overflows = Metric(
        "watch_overflows_total", .counter, [],
        "Number of times the kernel lost events, so that every folder was scanned again")

    package static let hookNotices = Metric(
        "hook_notices_total", .counter, ["hook", "result"],
        "Notices that ended; result is delivered, given_up, or dropped if too many waited")
    package static let hookFailures = Metric(
        "hook_attempts_failed_total", .counter, ["hook"], "Deliveries to a hook that failed")

    // MARK: Present state

    package static let hookWaiting = Metric("hook_waiting_notices", .gauge, ["hook"], "Notices that wait for the hook")
    package static let hookOldest = Metric(
        "hook_oldest_timestamp_seconds", .gauge, ["hook"], "Time of the event of the oldest waiting notice")
    package static let hookHeld = Metric(
        "hook_held_notices", .gauge, ["hook", "reason"],
        "Notices that wait because of a hold or because the last delivery failed; reason is the kind of the hold")
    package static let queueItems = Metric(
        "queue_items", .gauge, ["destination", "state"],
        "Uploads that have not ended, and failed uploads that need a decision")
    package static let queueBytes = Metric("queue_bytes", .gauge, ["destination", "state"], "Bytes of their files")
    package static let oldest = Metric(
        "queue_oldest_timestamp_seconds", .gauge, ["destination"],
        "Time at which the oldest upload that has not ended was created")
    package static let held = Metric(
        "held_uploads", .gauge, ["destination", "reason"],
        "Queued uploads whose folder or destination has a hold, or that wait for another destination; reason is the kind of the hold that ends last"
    )
    package static let ruleHeld = Metric(
        "rule_held_uploads", .gauge, ["destination", "rule", "file", "line", "facts"],
        "Queued uploads that a rule holds, with its place in the configuration; one of the facts, separated by commas, has to change for the hold to end, or the time"
    )
    package static let ruleHoldEnd = Metric(
        "rule_hold_end_timestamp_seconds", .gauge, ["destination", "rule", "file", "line"],
        "Time at which the rule ceases to hold the last of them; only where the time ends it")
    package static let destinationOpen = Metric(
        "destination_open", .gauge, ["destination"], "Whether no hold stops all uploads to it (1)")
    package static let lastSuccess = Metric(
        "last_success_timestamp_seconds", .gauge, ["destination"], "Time of the last completed upload since the start")
    package static let remoteFree = Metric(
        "destination_free_bytes", .gauge, ["destination"], "Free space at the destination, according to its last answer"
    )
    package static let metered = Metric(
        "network_metered", .gauge, ["destination", "interface"],
        "Whether the route to it is metered: 1, 0, or -1 if unknown; only if a rule depends on it")
    package static let folderPresent = Metric(
        "folder_present", .gauge, ["folder"], "Whether the folder exists and is watched (1)")
    package static let folderRemovable = Metric(
        "folder_removable", .gauge, ["folder"],
        "Whether the configuration says that its medium is removed from time to time (1)")
    package static let settling = Metric("settling_files", .gauge, ["folder"], "Files that have not settled yet")
    package static let polled = Metric(
        "polled_directories", .gauge, ["folder"], "Directories that are scanned periodically")
    package static let unwatched = Metric(
        "unwatched_directories", .gauge, ["folder"], "Periodically scanned directories that could get no watch")
    package static let stagingUsed = Metric("staging_bytes", .gauge, [], "Bytes of staged copies")
    package static let stagingFree = Metric(
        "staging_free_bytes", .gauge, [], "Bytes free on the disk of the staging folder")
    package static let stagingLimit = Metric(
        "staging_limit_bytes", .gauge, [], "Limit of the bytes of staged copies, if one is set")
    package static let stateFree = Metric("state_free_bytes", .gauge, [], "Bytes free on the disk of the state")
    package static let quotaUsedBytes = Metric(
        "quota_used_bytes", .gauge, ["place", "quota"],
        "Bytes that count for a quota now, including those reserved for transfers")
    package static let quotaLimitBytes = Metric(
        "quota_limit_bytes", .gauge, ["place", "quota"], "Bytes that a quota allows")
    package static let quotaUsedFiles = Metric(
        "quota_used_files", .gauge, ["place", "quota"], "Files that count for a quota now")
    package static let quotaLimitFiles = Metric(
        "quota_limit_files", .gauge, ["place", "quota"], "Files that a quota allows")
    package static let paused = Metric("paused", .gauge, [], "Whether everything is paused by command (1)")
    package static let troubles = Metric(
        "troubles", .gauge, [], "Problems that affect all uploads: lines among the warnings of the status")

    // MARK: The daemon itself

    package static let reloadSuccess = Metric(
        "config_last_reload_successful", .gauge, [], "Whether the last reload was applied (1); 1 before the first")
    package static let reloadTime = Metric(
        "config_last_reload_success_timestamp_seconds", .gauge, [], "Time since which the configuration is in force")
    package static let build = Metric("build_info", .gauge, ["version"], "1, with the version")
    // Not `process_…`: the node exporter has its own, and refuses a text file with the same names.
    package static let started = Metric("process_start_time_seconds", .gauge, [], "Time at which the daemon started")
    package static let cpu = Metric("process_cpu_seconds_total", .counter, [], "Processor time, of user and system")
    package static let resident = Metric("process_resident_memory_bytes", .gauge, [], "Bytes in memory")
    package static let openFiles = Metric("process_open_fds", .gauge, [], "Open descriptors")
    package static let maxOpenFiles = Metric("process_max_fds", .gauge, [], "Descriptors that may be open")

    package static let all: [Metric] = [
        files, uploads, uploadBytes, sentBytes, receivedBytes, failures, verifyFailures, durations, overflows,
        hookNotices, hookFailures, hookWaiting, hookOldest, hookHeld, queueItems, queueBytes,
        oldest, held, ruleHeld, ruleHoldEnd, destinationOpen, lastSuccess, remoteFree, metered, folderPresent,
        folderRemovable, settling,
        polled, unwatched, stagingUsed, stagingFree, stagingLimit, stateFree, quotaUsedBytes, quotaLimitBytes,
        quotaUsedFiles, quotaLimitFiles, paused, troubles, reloadSuccess, reloadTime, build, started, cpu, resident,
        openFiles, maxOpenFiles,
    ]
}

/// The content of `/metrics`: for each metric its values by their labels.
package struct MetricsView: Sendable, Hashable {
    package enum Value: Sendable, Hashable {
        case whole(Int64)
        case real(Double)
        case spread(Histogram)
    }

    package private(set) var numbers: [Metric: [[String]: Value]] = [:]

    package init() {}

    /// - Parameter labels: The values, in the order of ``Metric/labels``.
    package mutating func set(_ metric: Metric, _ labels: [String], _ value: Value) {
        assert(labels.count == metric.labels.count, "\(metric.name) has the labels \(metric.labels)")
        numbers[metric, default: [:]][labels] = value
    }

    package mutating func set(_ metric: Metric, _ labels: [String], _ value: Int64) {
        set(metric, labels, .whole(value))
    }
    package mutating func set(_ metric: Metric, _ labels: [String], _ value: Int) {
        set(metric, labels, .whole(Int64(value)))
    }
    package mutating func set(_ metric: Metric, _ labels: [String], _ value: Bool) {
        set(metric, labels, .whole(value ? 1 : 0))
    }
    package mutating func set(_ metric: Metric, _ labels: [String], _ time: WallTime) {
        set(metric, labels, .real(Double(time.milliseconds) / 1000))
    }

    package mutating func add(_ metric: Metric, _ labels: [String], _ more: Int64) {
        var sum: Int64 = 0
        if case .whole(let before)? = numbers[metric]?[labels] { sum = before }
        set(metric, labels, sum.addingClamped(more))
    }
}

/// A histogram of durations.
package struct Histogram: Sendable, Hashable {
    /// Upper bounds in seconds: from a small file in the local network to a long recording over a slow line.
    package static let bounds: [Double] = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400]

    /// Counts below each of ``bounds`` and above the one before; the last count is above all of them.
    package private(set) var counts = [Int64](repeating: 0, count: bounds.count + 1)
    package private(set) var sum: Double = 0

    package init() {}

    package mutating func add(_ seconds: Double) {
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        sum += seconds
    }
}
