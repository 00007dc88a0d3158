package import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Store
internal import Synchronization
internal import Watch

/// Access to the configuration for a reload, and the callbacks around it.
package struct Reloading: Sendable {
    /// Reads and checks the whole configuration again.
    ///
    /// - Throws: `ConfigErrors`.
    package var load: @Sendable () async throws -> LoadedSettings
    /// Called when a reload begins, and when it is over, with any result: for a supervisor.
    package var began: @Sendable () -> Void
    package var ended: @Sendable () -> Void

    package init(
        load: @escaping @Sendable () async throws -> LoadedSettings, began: @escaping @Sendable () -> Void = {},
        ended: @escaping @Sendable () -> Void = {}
    ) {
        self.load = load
        self.began = began
        self.ended = ended
    }
}

/// Runs reloads one after another, in the order of their requests.
actor ReloadQueue {
    private var last: Task<ReloadView, any Error>?

    func run(_ body: @escaping @Sendable () async throws -> ReloadView) async throws -> ReloadView {
        let before = last
        let task = Task {
            // The result of the reload before is handled by its own caller.
            _ = await before?.result
            return try await body()
        }
        last = task
        return try await task.value
    }
}

extension Daemon {
    /// Puts the configuration files, as they are now, in force: all of it, or nothing of it.
    ///
    /// The result is the same as that of a stop and a start with the new files, without the stop: whatever did not
    /// change continues, including transfers and waits.
    package func reload() async throws -> ReloadView {
        try requireReady()
        guard let reloading else {
            throw Refusal(.unavailable, "this daemon was started without a configuration to read again")
        }
        return try await reloads.run {
            if self.isStopping.load(ordering: .acquiring) {
                throw Refusal(.unavailable, "the daemon is stopping: nothing was reloaded")
            }
            reloading.began()
            defer { reloading.ended() }
            let view = try await self.reload(reloading)
            self.isLastReloadApplied.store(view.applied, ordering: .relaxed)
            self.tell(view)
            return view
        }
    }

    private func reload(_ reloading: Reloading) async throws -> ReloadView {
        let loaded: LoadedSettings
        do { loaded = try await reloading.load() } catch let errors as ConfigErrors {
            return ReloadView(applied: false, errors: errors.problems.map(ProblemView.init))
        }
        let warnings = loaded.warnings.map(ProblemView.init)
        let (old, new) = (house.setup, loaded.settings)
        let changes = SettingsChanges(from: old.settings, to: new)
        if !changes.fixed.isEmpty {
            let file = loaded.files.first?.display ?? ""
            let errors = changes.fixed.map {
                ProblemView(
                    place: file, key: $0.key,
                    text: "cannot change from \($0.old) to \($0.new) while the daemon runs; "
                        + "restart to apply it, or put it back")
            }
            return ReloadView(applied: false, errors: errors, warnings: warnings)
        }
        // Every step that can fail comes before the first change.
        var setup = RuntimeConfiguration(
            settings: new, staging: Self.stagingArea(new.staging), destinations: [:], since: house.clocks.wall())
        var errors: [ProblemView] = []
        for destination in new.destinations {
            let before = old.settings.destinations.first { $0.name == destination.name }
            if let before, before.isSameRemote(as: destination), let made = old.destinations[destination.name] {
                setup.destinations[destination.name] = made
                continue
            }
            do { setup.destinations[destination.name] = try make(destination) } catch let error as UnusableSetting {
                errors.append(
                    ProblemView(
                        place: destination.places.byKey[error.key] ?? destination.place,
                        key: "destinations.\(destination.name).\(error.key)", text: error.problem))
            } catch {
                errors.append(
                    ProblemView(place: destination.place, key: "destinations.\(destination.name)", text: "\(error)"))
            }
        }
        if !errors.isEmpty { return ReloadView(applied: false, errors: errors, warnings: warnings) }
        do {
            let first = try await foldersOfFirstWatch(new)
            try await house.store.sort(by: Self.sorting(new))
            firstWatch.withLock { $0 = first }
        } catch {
            throw Refusal(.unavailable, "the state cannot be asked, so nothing was reloaded: \(error)")
        }
        await take(setup, from: old)
        return ReloadView(applied: true, changes: changes.changes.map(ChangeView.init), warnings: warnings)
    }

    /// Nothing here can fail.
    private func take(_ setup: RuntimeConfiguration, from old: RuntimeConfiguration) async {
        let names = Set(old.destinations.keys).union(setup.destinations.keys)
        let changed = names.filter { name in
            guard let before = old.settings.destinations.first(where: { $0.name == name }),
                let after = setup.settings.destinations.first(where: { $0.name == name })
            else { return true }
            return !before.isSameRemote(as: after)
        }
        house.secrets.renew()
        // Before the watcher gets the change: a file that settles in a new folder must find its settings.
        await scheduler.take(setup, changed: changed)
        if old.settings.folders.map(\.watch) != setup.settings.folders.map(\.watch) {
            watcher.change(setup.settings.folders.map(\.watch), skipExisting: skipping(setup.settings))
        }
        await hooks?.take()
        await stager.reconsiderRoom()
        let unsure = { (settings: Settings) in
            Dictionary(settings.folders.map { ($0.watch.name, $0.releaseUnsure) }, uniquingKeysWith: { $1 })
        }
        let (before, now) = (unsure(old.settings), unsure(setup.settings))
        do { try await releaser.judgeAnew(Set(before.filter { now[$0.key] != $0.value }.keys)) } catch {
            house.log.warning("sources that were kept stay until the next start", ["reason": "\(error)"])
        }
        for signal in [
            house.stagingSignal, house.releaseSignal, house.removalSignal, house.maintenanceSignal,
            house.retentionSignal, house.metricsSignal,
            house.historySignal,
        ] {
            signal.signal()
        }
    }

    private func tell(_ view: ReloadView) {
        for warning in view.warnings {
            house.log.warning("configuration", ["at": warning.place, "key": warning.key, "text": warning.text])
        }
        guard view.applied else {
            for error in view.errors {
                house.log.error(
                    "configuration not reloaded, the old one stays in force",
                    ["at": error.place, "key": error.key.isEmpty ? nil : error.key, "text": error.text])
            }
            return
        }
        house.log.notice(
            "configuration reloaded",
            ["changes": view.changes.isEmpty ? "none" : view.changes.map(\.words).joined(separator: "; ")])
    }
}

extension ChangeView {
    /// `folder cam added`, `destination nas changed (token, url)`.
    package var words: String {
        "\(what)\(name.map { " " + $0 } ?? "") \(change)" + (keys.isEmpty ? "" : " (\(keys.joined(separator: ", ")))")
    }
}
