internal import API
package import Config
package import Core
package import Linux
package import Store

/// Releases verified sources that were kept for a while: when their time is over (`after_upload.for`), and the oldest
/// when the folder's disk has little free space (`until_free`).
///
/// It only chooses. The chosen sources take the way of every release (``Releaser``), which checks the file once more.
actor SourceRetention {
    private let context: Context
    private let stateHealth: StateHealth
    private let signal: AsyncSignal
    /// The free space of a folder's disk before the last removals, and the bytes removed.
    private var expectedGains: [String: (free: Int64, bytes: Int64)] = [:]
    /// Folders where removals did not help: how often in a row, and until when no more sources are removed.
    private var ineffectiveFolders: [String: (times: Int, until: MonotonicTime)] = [:]
    /// The offset of the wall clock to the monotonic clock, and the time from which its last jump is trusted.
    private var ahead: Duration
    private var clockTrustedFrom: MonotonicTime?

    /// Sources in one transaction.
    private static let together = 256
    /// Polled, since no event reports a disk that fills up.
    private static let status: Duration = .seconds(60)
    /// Short at first: a camera may have filled the freed space at once.
    private static let pauseWhenUseless = Backoff(first: .seconds(5), ceiling: .seconds(3600))
    private static let warnAt = 4
    /// 2024-01-01: a clock that shows an earlier time was never set.
    private static let firstMoment = WallTime(milliseconds: 1_704_067_200_000)
    /// A larger jump of the clock has to persist for a while before sources are removed by it.
    private static let jump: Duration = .seconds(600)
    private static let stableTime: Duration = .seconds(3600)

    init(context: Context, stateHealth: StateHealth, signal: AsyncSignal) {
        (self.context, self.stateHealth, self.signal) = (context, stateHealth, signal)
        ahead = Self.ahead(context.clocks)
    }

    private static func ahead(_ clocks: any Clocks) -> Duration {
        .milliseconds(clocks.wall().milliseconds) - .nanoseconds(clocks.monotonic().nanoseconds)
    }

    func run() async throws {
        while !Task.isCancelled {
            var next: Duration?
            for folder in context.settings.presentFolders where folder.retention.isLimited {
                do {
                    if let due = try await prune(folder) { next = min(next ?? due, due) }
                } catch let error as StoreError {
                    stateHealth.failed(error)
                    next = .seconds(5)
                }
            }
            await signal.wait(atMost: next)
        }
    }

    /// - Returns: When to check again; `nil` when the folder keeps no sources.
    private func prune(_ folder: FolderSettings) async throws -> Duration? {
        let name = folder.watch.name
        guard let oldest = try await context.store.read({ try $0.keptSources.oldest(in: name, limit: 1) }).first else {
            return nil
        }
        var next: Duration?
        if let time = folder.retention.time { next = try await expire(name, after: time) ?? Self.status }
        if let floor = folder.retention.untilFree {
            try await freeSpace(folder, floor, oldest)
            let pause =
                ineffectiveFolders[name].map { max(.seconds(1), $0.until.since(context.clocks.monotonic())) }
                ?? Self.status
            next = min(next ?? Self.status, Self.status, pause)
        }
        return next
    }

    // MARK: By time

    /// - Returns: The time until the next source is due.
    private func expire(_ folder: String, after time: Duration) async throws -> Duration? {
        let now = context.clocks.wall()
        if let wait = untrusted(now) { return wait }
        while !Task.isCancelled {
            let due = try await context.store.read {
                try $0.keptSources.oldest(in: folder, until: now.advanced(by: .zero - time), limit: Self.together)
            }
            if due.isEmpty { break }
            let unset = due.filter { $0.since < Self.firstMoment }
            try await context.store.write { try $0.keptSources.renew(unset.map(\.asset)) }
            try await release(
                due.filter { $0.since >= Self.firstMoment }, of: folder, why: "its retention time has ended")
        }
        let oldest = try await context.store.read { try $0.keptSources.oldest(in: folder, limit: 1) }.first
        // At least a second: milliseconds are cut off on the way.
        return oldest.map { max(.seconds(1), .milliseconds($0.since.milliseconds - now.milliseconds) + time) }
    }

    /// - Returns: How long the clock is not to be trusted; `nil` when it is trusted.
    private func untrusted(_ now: WallTime) -> Duration? {
        let running = context.clocks.monotonic()
        let ahead = Self.ahead(context.clocks)
        let jump = ahead - self.ahead
        if jump > Self.jump || jump < .zero - Self.jump {
            clockTrustedFrom = running.advanced(by: Self.stableTime)
            context.log.notice(
                "the clock jumped: sources whose retention time has ended stay until it has been stable for an hour",
                ["by": "\(jump)"])
        }
        self.ahead = ahead
        guard now >= Self.firstMoment else { return Self.stableTime }
        guard let clockTrustedFrom, clockTrustedFrom > running else { return nil }
        return clockTrustedFrom.since(running)
    }

    // MARK: By free space

    private func freeSpace(_ folder: FolderSettings, _ floor: Int64, _ oldest: KeptSource) async throws {
        let name = folder.watch.name
        // An absent folder has no space to free; the watcher reports its trouble.
        guard let disk = try? await blocking({ try SourceDisk(of: folder.watch.path) }) else { return }
        let leaving = try await context.store.read { try $0.keptSources.countLeaving(name) }
        if leaving.files == 0 { judge(name, disk, floor) }
        var missing = floor - disk.free - leaving.bytes
        guard missing > 0, ineffectiveFolders[name].map({ $0.until <= context.clocks.monotonic() }) ?? true else {
            return
        }
        var taken: Int64 = 0
        while missing > 0, !Task.isCancelled {
            let some = Self.prefixCovering(
                try await context.store.read {
                    try $0.keptSources.oldest(in: name, on: disk.fileSystem, limit: Self.together)
                }, for: missing)
            if some.isEmpty { break }
            let bytes = try await release(some, of: name, why: "its disk has less than \(floor) bytes free")
            missing -= bytes
            taken += bytes
        }
        if taken > 0 { expectedGains[name] = (disk.free, taken) }
    }

    /// Decides whether the last removals freed space: snapshots and other names of the same file may keep it.
    private func judge(_ folder: String, _ disk: SourceDisk, _ floor: Int64) {
        guard let hope = expectedGains[folder] else { return }
        if disk.free < floor, disk.free - hope.free < hope.bytes / 10 {
            let times = (ineffectiveFolders[folder]?.times ?? 0) + 1
            let pause = Self.pauseWhenUseless.wait(afterFailures: times, jitter: 1)
            ineffectiveFolders[folder] = (times, context.clocks.monotonic().advanced(by: pause))
            if times == Self.warnAt {
                context.log.warning(
                    "deleting verified sources frees no space; Sluice deletes them less often. Snapshots or hard "
                        + "links may hold their blocks, or another program fills the disk",
                    ["folder": folder, "taken": "\(hope.bytes)", "free": "\(disk.free)"])
            }
        } else {
            ineffectiveFolders[folder] = nil
        }
        expectedGains[folder] = nil
    }

    /// The first sources that together have `bytes`.
    static func prefixCovering(_ kept: [KeptSource], for bytes: Int64) -> [KeptSource] {
        var sum: Int64 = 0
        return Array(
            kept.prefix { one in
                defer { sum += max(0, one.size) }
                return sum < bytes
            })
    }

    /// - Returns: The bytes of the sources to be removed.
    @discardableResult
    private func release(_ some: [KeptSource], of folder: String, why: String) async throws -> Int64 {
        if some.isEmpty { return 0 }
        let going = Set(try await context.store.write { try $0.keptSources.expire(some.map(\.asset)) })
        let chosen = some.filter { going.contains($0.asset) }
        for one in chosen {
            context.log.info(
                "will delete a verified source",
                ["folder": folder, "path": one.path.display, "verified": "\(one.since)", "reason": why])
        }
        CrashPoint.reached("expired")
        return chosen.reduce(0) { $0 + $1.size }
    }
}

// MARK: - For status

extension SourceRetention {
    /// The sources that would be removed now, without removing them. At most ``together`` files are counted.
    func view(_ folder: FolderSettings) async throws -> RetentionView? {
        guard folder.retention.isLimited else { return nil }
        let name = folder.watch.name
        // The watcher reports the trouble of an absent folder.
        let disk = try? await blocking { try SourceDisk(of: folder.watch.path) }
        let (leaving, store) = (try await context.store.read { try $0.keptSources.countLeaving(name) }, context.store)
        let going = try await folder.sourcesToRelease(
            free: disk.map { $0.free + leaving.bytes }, on: disk?.fileSystem, now: context.clocks.wall()
        ) { disk, latest, limit in
            try await store.read { try $0.keptSources.oldest(in: name, on: disk, until: latest, limit: limit) }
        }
        return RetentionView(
            free: disk?.free, untilFree: folder.retention.untilFree,
            seconds: folder.retention.time.map { $0.inMilliseconds / 1000 },
            goingFiles: going.count + leaving.files, goingBytes: going.reduce(leaving.bytes) { $0 + $1.size },
            oldest: try await context.store.read { try $0.keptSources.oldest(in: name, limit: 1) }.first?.since
                .description)
    }
}

extension FolderSettings {
    /// The verified sources that the folder's rules release now, at most 1,000.
    ///
    /// - Parameters:
    ///   - free: Bytes free on its disk; `nil` when the disk is absent.
    ///   - kept: Like ``KeptSources/oldest(in:on:until:limit:)``.
    package func sourcesToRelease(
        free: Int64?, on fileSystem: String?, now: WallTime,
        kept: (_ on: String?, _ until: WallTime?, _ limit: Int) async throws -> [KeptSource]
    ) async throws -> [KeptSource] {
        var going: [KeptSource] = []
        if let time = retention.time { going = try await kept(nil, now.advanced(by: .zero - time), 1_000) }
        if let floor = retention.untilFree, let free, free < floor {
            let forSpace = SourceRetention.prefixCovering(try await kept(fileSystem, nil, 1_000), for: floor - free)
            // Both lists begin with the oldest.
            if forSpace.count > going.count { going = forSpace }
        }
        return going
    }
}

/// The disk that contains a folder. Waits for it.
package struct SourceDisk: Sendable {
    /// Free bytes for an unprivileged user.
    package let free: Int64
    /// As in ``FileIdentity/fileSystem``.
    package let fileSystem: String?

    package init(of folder: FilePath) throws(SystemError) {
        // Asked again: a medium may have been replaced by another.
        fileSystem = FileSystems().identity(at: folder, device: try FileStatus(at: folder).device)?.name
        free = try Space(at: folder).free
    }
}
