internal import API
internal import Config
internal import Core
internal import Linux

/// Writes the files of `metrics`.
struct ReportWriter: Sendable {
    let context: Context
    let metrics: MetricsCollector
    let status: StatusCollector
    /// Wakes it: the files may be due.
    let signal: AsyncSignal
    let troubles: Alerts
    private let metricsDisk = SlowDisk(timeout: .seconds(5))
    private let statusDisk = SlowDisk(timeout: .seconds(5))

    init(
        context: Context, metrics: MetricsCollector, status: StatusCollector,
        signal: AsyncSignal, troubles: Alerts
    ) {
        self.context = context
        self.metrics = metrics
        self.status = status
        self.signal = signal
        self.troubles = troubles
    }

    /// Writes the files of `metrics` until the task is cancelled. Where none is configured it sleeps until a reload.
    func run() async throws {
        while !Task.isCancelled {
            let settings = context.settings.metrics
            await write(settings)
            await signal.wait(atMost: settings.isWritten ? settings.every : nil)
        }
    }

    /// Writes each file independently: a file that cannot be written delays neither the other one nor anything else.
    func write(_ settings: MetricsSettings) async {
        await write("metrics.textfile", settings.textfile, metricsDisk) {
            MetricsText.bytes(try await metrics.metrics())
        }
        await write("metrics.status_file", settings.statusFile, statusDisk) {
            try JSON.line(try await status.status())
        }
    }

    private func write(
        _ key: String, _ path: FilePath?, _ disk: SlowDisk, _ content: () async throws -> [UInt8]
    ) async {
        guard let path else {
            _ = troubles.clear(key)
            return
        }
        do {
            let content = try await content()
            // A disk that does not answer must not keep a run from ending.
            try await disk.run { _ in try Files.publish(path, content, mode: 0o644) }
            if troubles.clear(key) { context.log.notice("file written again after failures", ["path": path.display]) }
        } catch is CancellationError {
            // The daemon stops.
        } catch {
            let text = "\(key) cannot be written: " + words(error, path.parent)
            if troubles.set(key, Hold(.disk, since: context.clocks.wall(), text: text)) {
                context.log.warning("cannot write a file; will retry", ["path": path.display, "reason": text])
            }
        }
    }

    private func words(_ error: any Error, _ folder: FilePath) -> String {
        if let silent = error as? SlowDisk.TimeoutError {
            return "its disk has not responded for \(Int(silent.timeout.inSeconds)) s"
        }
        guard let error = error as? SystemError else { return "\(error)" }
        if error.isDenied { return "\(error); the daemon's user needs write permission on \(folder.display)" }
        if error.isMissing { return "\(error); create \(folder.display), or name another folder" }
        if error.isReadOnly {
            return "\(error); under systemd, `sudo sluice systemd-paths --install` opens \(folder.display)"
        }
        return error.description
    }
}
