internal import API
internal import Core
internal import Synchronization

/// The progress of the copies in progress, by their assets. Known only while they run, and never stored.
final class LiveStaging: Sendable {
    enum Work: String, Sendable { case copying, digesting, exporting, receiving }

    struct Run: Sendable {
        let path: FilePath
        let work: Work
        /// 0 where the total is unknown.
        let total: Int64
        /// Source bytes that are done; 0 throughout for an export, which reports a fraction if anything.
        var done: Int64 = 0
        /// 0...1.
        var fraction: Double?
        var rate: Int64 = 0
        var eta: Int64?
        let startedAt: MonotonicTime
        fileprivate var speed: SmoothedRate
    }

    private let runs = Mutex<[Int64: Run]>([:])
    private let clocks: any Clocks

    init(clocks: any Clocks) { self.clocks = clocks }

    func begin(_ asset: Int64, _ path: FilePath, _ work: Work, total: Int64) {
        let now = clocks.monotonic()
        runs.withLock {
            $0[asset] = Run(path: path, work: work, total: total, startedAt: now, speed: SmoothedRate(at: now))
        }
    }

    func end(_ asset: Int64) { runs.withLock { _ = $0.removeValue(forKey: asset) } }

    /// Called for every block, by the copying thread.
    func copied(_ asset: Int64, _ done: Int64) {
        let now = clocks.monotonic()
        runs.withLock { runs in
            guard var run = runs[asset] else { return }
            run.done = done
            run.fraction = run.total > 0 ? min(1, Double(done) / Double(run.total)) : nil
            run.speed.move(to: done, at: now)
            run.rate = run.speed.smoothed
            if run.rate > 0, run.total > 0 { run.eta = max(0, run.total - done) / run.rate }
            runs[asset] = run
        }
    }

    func exported(_ asset: Int64, _ progress: ExportProgress) {
        let now = clocks.monotonic()
        runs.withLock { runs in
            guard var run = runs[asset] else { return }
            run.fraction = progress.fraction
            let elapsed = now.since(run.startedAt).inSeconds
            if let fraction = progress.fraction, fraction > 0.001, elapsed > 1 {
                run.eta = Int64(elapsed / fraction * (1 - fraction))
            }
            runs[asset] = run
        }
    }

    subscript(asset: Int64) -> Run? { runs.withLock { $0[asset] } }
    var assets: [Int64] { runs.withLock { Array($0.keys) } }
    var all: [Run] { runs.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }
    var isEmpty: Bool { runs.withLock { $0.isEmpty } }
}

extension StagingRunView {
    init(_ run: LiveStaging.Run) {
        self.init(
            path: run.path.display, work: run.work.rawValue, fraction: run.fraction, done: run.done, total: run.total,
            rate: run.rate > 0 ? run.rate : nil, eta: run.eta)
    }
}
