internal import Core
internal import Glibc
internal import Linux
internal import Synchronization
internal import TestKit
internal import Watch

/// The watching thread: its first scan compared with find(1), many watches, and a burst that the kernel's queue cannot
/// hold.
let watchMarks: [Mark] = [
    Mark(
        name: "watch/scan",
        what:
            "the first walk through \(count("FILES", 1_000_000)) files in 1,000 directories, all of them known, against "
            + "find -printf '%s %T@', cache warm"
    ) { bench in
        let find = try bench.program("find", package: "findutils")
        let files = count("FILES", 1_000_000)
        let folder = TemporaryFolder()
        for directory in 0..<1_000 {
            let path = folder.path.appending(FilePath("\(directory)"))
            try Files.makeFolders(path)
            for number in 0..<(files / 1_000) {
                try Descriptor.open(path.appending(FilePath("recording-\(number).mp4")), for: .creating)
                    .close(named: path)
            }
        }
        var ours: [Bench.Run] = [], theirs: [Bench.Run] = []
        for _ in 0...bench.rounds {
            let script = "exec \(find.display) \(folder.path.display) -type f -printf '%s %T@\\n' >/dev/null"
            theirs.append(try await bench.run("/bin/sh", ["-c", script]))
            let clock = ContinuousClock()
            let start = clock.now
            let before = processorSeconds()
            let asked = Atomic(0)
            let watched = Watched(folder.path) { identities in
                asked.wrappingAdd(identities.count, ordering: .relaxed)
                return [Bool](repeating: true, count: identities.count)
            }
            try await watched.scanned()
            // The last of them are queried when the answer before has come.
            try await eventually("all files were seen", every: .milliseconds(10)) {
                asked.load(ordering: .relaxed) >= files
            }
            let processor = processorSeconds() - before
            ours.append(Bench.Run(wall: start.duration(to: clock.now).inSeconds, processor: processor))
            await watched.stop()
            let seen = asked.load(ordering: .relaxed)
            guard seen == files else { throw WrongResult("\(seen) of \(files) files were seen") }
        }
        func each(_ ours: Double, _ theirs: Double) -> String {
            "\(shown(1e6 * ours / Double(files))) µs a file, find \(shown(1e6 * theirs / Double(files)))"
        }
        // The first round warmed the cache.
        ours.removeFirst()
        theirs.removeFirst()
        return [
            .ratio("scan", ours.wall, to: theirs.wall, most: 0.8, each(ours.wall, theirs.wall)),
            // Both threads together: they overlap, and need as much of the machine as one would.
            .note(
                "scan, processor",
                "\(shown(ours.processor / theirs.processor)) x (\(each(ours.processor, theirs.processor)))"),
        ]
    },
    Mark(name: "watch/watches", what: "\(count("WATCHES", 100_000)) directories, each with its watch") { _ in
        let directories = count("WATCHES", 100_000)
        let folder = TemporaryFolder()
        for number in 0..<directories {
            try Files.makeFolders(folder.path.appending(FilePath("\(number / 300)/\(number)")))
        }
        let before = processorSeconds()
        let memory = try Usage(of: getpid()).resident
        let watched = Watched(folder.path)
        try await watched.scanned()
        let used = processorSeconds() - before
        let state = try await eventually("the state is told") { watched.watcher.states().first }
        let grown = try Usage(of: getpid()).resident - memory
        // One file in the last directory of all: its event arrives.
        let start = ContinuousClock().now
        try Descriptor.open(
            folder.path.appending(FilePath("\((directories - 1) / 300)/\(directories - 1)/a")), for: .creating
        ).close(named: "a")
        try await watched.settled(1)
        let wait = start.duration(to: ContinuousClock().now).inSeconds
        await watched.stop()
        guard state.unwatched == 0 else {
            throw Absent(
                what: "room for \(directories) watches (\(state.unwatched) got none)",
                remedy: "sysctl fs.inotify.max_user_watches=524288")
        }
        return [
            .note("to set them", "\(shown(used)) s of processor"),
            .note("our memory", "\(grown / Int64(directories)) bytes a directory"),
            .note("a file in the last one settles in", "\(shown(wait)) s"),
        ]
    },
    Mark(name: "watch/burst", what: "\(count("BURST", 50_000)) files made as fast as they can be, none lost") { _ in
        let files = count("BURST", 50_000)
        let folder = TemporaryFolder()
        for directory in 0..<50 { try Files.makeFolders(folder.path.appending(FilePath("\(directory)"))) }
        let watched = Watched(folder.path)
        try await watched.scanned()
        let clock = ContinuousClock()
        let start = clock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    try await blocking {
                        for number in stride(from: writer, to: files, by: 4) {
                            let path = folder.path.appending(FilePath("\(number % 50)/\(number)"))
                            try Descriptor.open(path, for: .creating).close(named: path)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let made = start.duration(to: clock.now).inSeconds
        try await watched.settled(files)
        let overflows = watched.watcher.overflows()
        await watched.stop()
        return [
            .bound("lost", Double(files - watched.names), "files", most: 0),
            .bound("twice", Double(watched.count - files), "files", most: 0),
            .note("made in", "\(shown(made)) s; the kernel lost events \(overflows) times"),
            .note("all settled after", "\(shown(start.duration(to: clock.now).inSeconds)) s"),
        ]
    },
]

/// Processor seconds of this process so far.
private func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The files that a watcher has reported.
private final class Reports: Sendable {
    let content = Mutex((isScanned: false, count: 0, names: Set<FilePath>()))
}

/// A running watcher over one folder.
private struct Watched: Sendable {
    let watcher: Watcher
    private let reports: Reports
    private let running: Task<Void, any Error>

    /// - Parameter isKnown: By default, the files that were passed on are known.
    init(_ folder: FilePath, isKnown: Watcher.Filter? = nil) {
        let reports = Reports()
        self.reports = reports
        let isKnown =
            isKnown ?? { identities in
                reports.content.withLock { reports in identities.map { reports.names.contains($0.relative) } }
            }
        let watcher = Watcher(
            rules: [WatchRule(name: "cam", path: folder)], clocks: SystemClocks(), isKnown: isKnown, log: { _ in })
        self.watcher = watcher
        running = Task {
            try await watcher.run(
                onSettled: { files in
                    reports.content.withLock { reports in
                        reports.count += files.count
                        reports.names.formUnion(files.map(\.relative))
                    }
                }, onScanned: { _ in reports.content.withLock { $0.isScanned = true } })
        }
    }

    var count: Int { reports.content.withLock { $0.count } }
    var names: Int { reports.content.withLock { $0.names.count } }

    func scanned() async throws {
        try await eventually("the first scan is over", within: .seconds(600), every: .milliseconds(10)) {
            reports.content.withLock { $0.isScanned }
        }
    }

    func settled(_ files: Int) async throws {
        try await eventually("\(files) files have settled", within: .seconds(600)) { names >= files }
    }

    func stop() async {
        running.cancel()
        _ = await running.result
    }
}
