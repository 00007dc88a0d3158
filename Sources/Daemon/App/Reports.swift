internal import Config
internal import Core
internal import Linux

/// Encodes metrics, status and events for files and hooks, in the same form as the API's answers. Provided by the
/// program that serves the API.
package struct Reporting: Sendable {
    package var metrics: @Sendable (MetricsView) throws -> [UInt8]
    package var status: @Sendable (StatusView) throws -> [UInt8]
    /// The body of a notice to a hook.
    package var event: @Sendable (EventView) throws -> [UInt8]

    package init(
        metrics: @escaping @Sendable (MetricsView) throws -> [UInt8],
        status: @escaping @Sendable (StatusView) throws -> [UInt8],
        event: @escaping @Sendable (EventView) throws -> [UInt8]
    ) {
        self.event = event
        self.metrics = metrics
        self.status = status
    }
}

extension Daemon {
    /// Writes the files of `metrics` until the task is cancelled. Where none is configured it sleeps until a reload.
    func report() async throws {
        while !Task.isCancelled {
            let settings = house.settings.metrics
            await writeReports(settings)
            await house.metricsSignal.wait(atMost: settings.isWritten ? settings.every : nil)
        }
    }

    /// Writes each file independently: a file that cannot be written delays neither the other one nor anything else.
    func writeReports(_ settings: MetricsSettings) async {
        guard let reporting else { return }
        await writeReport("metrics.textfile", settings.textfile, reportDisks.metrics) {
            try reporting.metrics(try await self.metrics())
        }
        await writeReport("metrics.status_file", settings.statusFile, reportDisks.status) {
            try reporting.status(try await self.status())
        }
    }

    private func writeReport(
        _ key: String, _ path: FilePath?, _ disk: SlowDisk, _ content: () async throws -> [UInt8]
    ) async {
        guard let path else {
            _ = house.reportTroubles.clear(key)
            return
        }
        do {
            let content = try await content()
            // A disk that does not answer must not keep a run from ending.
            try await disk.run { _ in try Files.publish(path, content, mode: 0o644) }
            if house.reportTroubles.clear(key) { house.log.notice("written again", ["path": path.display]) }
        } catch is CancellationError {
            // The daemon stops.
        } catch {
            let text = "\(key) cannot be written: " + words(error, path.parent)
            if house.reportTroubles.set(key, Hold(.disk, since: house.clocks.wall(), text: text)) {
                house.log.warning("cannot be written, tried again", ["path": path.display, "reason": text])
            }
        }
    }

    private func words(_ error: any Error, _ folder: FilePath) -> String {
        if let silent = error as? SlowDisk.Silent {
            return "its disk has not answered for \(Int(silent.patience.inSeconds)) s"
        }
        guard let error = error as? SystemError else { return "\(error)" }
        if error.isDenied { return "\(error); the daemon's user needs write permission on \(folder.display)" }
        if error.isMissing { return "\(error); make \(folder.display), or name another folder" }
        if error.isReadOnly { return "\(error); under systemd, name \(folder.display) in ReadWritePaths= of the unit" }
        return error.description
    }
}
