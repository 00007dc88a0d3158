internal import API
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

/// Puts the configuration files in force again while the daemon runs: all of them, or nothing of them.
final class ConfigurationReloader: Sendable {
    private let context: Context
    private let lifecycle: DaemonPhase
    /// Without it the configuration cannot be reloaded.
    private let reloading: Reloading?
    private let factory: DestinationFactory
    private let firstWatch: NewFolders
    private let cards: CardFolders
    private let secrets: SecretReader
    private let loops: Loops
    private let signals: WakeUps
    /// Reloads run one after another.
    private let queue = TaskQueue()
    private let lastReloadSucceeded = Atomic(true)

    /// The loops that get new settings, each by a call of its own.
    struct Loops: Sendable {
        let watcher: Watcher
        let scheduler: Scheduler
        let stager: Stager
        let releaser: Releaser
        let hooks: Hooks
    }

    init(
        context: Context, lifecycle: DaemonPhase, reloading: Reloading?, factory: DestinationFactory,
        firstWatch: NewFolders, cards: CardFolders, secrets: SecretReader, loops: Loops, signals: WakeUps
    ) {
        self.context = context
        self.lifecycle = lifecycle
        self.reloading = reloading
        self.factory = factory
        self.firstWatch = firstWatch
        self.cards = cards
        self.secrets = secrets
        self.loops = loops
        self.signals = signals
    }

    /// Whether the last reload was applied; `true` before the first.
    var isLastReloadApplied: Bool { lastReloadSucceeded.load(ordering: .relaxed) }

    /// Puts the configuration files, as they are now, in force: all of it, or nothing of it.
    ///
    /// The result is the same as that of a stop and a start with the new files, without the stop: whatever did not
    /// change continues, including transfers and waits.
    func reload() async throws -> ReloadView {
        try lifecycle.requireReady()
        guard let reloading else {
            throw Refusal(.unavailable, "this daemon was started without a configuration file that could be reloaded")
        }
        return try await queue.run {
            if self.lifecycle.isStopping {
                throw Refusal(.unavailable, "the daemon is stopping: nothing was reloaded")
            }
            reloading.began()
            defer { reloading.ended() }
            let view = try await self.reload(reloading)
            self.lastReloadSucceeded.store(view.applied, ordering: .relaxed)
            self.logResult(view)
            return view
        }
    }

    private func reload(_ reloading: Reloading) async throws -> ReloadView {
        var loaded: LoadedSettings
        do { loaded = try await reloading.load() } catch let errors as ConfigErrors {
            return ReloadView(applied: false, errors: errors.problems.map(ProblemView.init))
        }
        let old = context.configuration.value
        do { loaded.settings = try await cards.expand(loaded.settings) } catch { throw unreadable(error) }
        // Every step that can fail comes before the first change.
        let prepared = PreparedReload(
            loaded, replacing: old, at: context.clocks.wall(), make: { try factory.make($0) })
        guard var new = prepared.configuration else { return prepared.view }
        do { new.questions = try await prepareFiles(of: new.settings) } catch { throw unreadable(error) }
        secrets.renew()
        await secrets.learn(new.settings)
        await apply(new, from: old)
        return prepared.view
    }

    private func unreadable(_ error: any Error) -> Refusal {
        Refusal(.unavailable, "cannot read the state, so nothing was reloaded: \(error)")
    }

    /// Watches the folders of the cards that are mounted now, whenever mounts change.
    func followCards() async throws {
        while !Task.isCancelled {
            // First without a wait: a mount since the start may have been missed.
            do { try await queue.run { try await self.applyCards() } } catch let error as StoreError {
                // They are looked for again at the next mount, and when the state can be written again.
                context.log.warning("cannot look for cards", ["reason": "\(error)"])
            }
            await signals.mounts.wait()
        }
    }

    private func applyCards() async throws {
        let old = context.configuration.value
        if old.settings.patternFolders.isEmpty || lifecycle.isStopping { return }
        var new = old
        new.settings = try await cards.expand(old.settings)
        if new.settings == old.settings { return }
        new.questions = try await prepareFiles(of: new.settings)
        cards.logChange(from: old.settings, to: new.settings)
        await apply(new, from: old)
    }

    /// - Returns: The questions that are asked of files from now on.
    private func prepareFiles(of settings: Settings) async throws -> FileQuestions {
        try await cards.remember(settings)
        let first = try await firstWatch.find(in: settings)
        try await context.store.sort(by: UploadSort(settings))
        // The last step that can fail: the questions in force are the stored ones.
        let questions = try await context.store.ask(settings.fileQuestions)
        firstWatch.replace(first)
        return questions
    }

    /// Nothing here can fail.
    private func apply(_ new: RuntimeConfiguration, from old: RuntimeConfiguration) async {
        // Before the watcher gets the change: a file that settles in a new folder must find its settings.
        await loops.scheduler.apply(new, changed: PreparedReload.changedDestinations(from: old, to: new))
        let rules = new.settings.presentFolders.map(\.watch)
        if old.settings.presentFolders.map(\.watch) != rules {
            loops.watcher.change(rules, skipExisting: firstWatch.skipping(new.settings))
        }
        await loops.hooks.collect()
        await loops.stager.reconsiderSpace()
        let changed = PreparedReload.foldersWithOtherReleaseUnsure(from: old.settings, to: new.settings)
        do { try await loops.releaser.reevaluate(changed) } catch {
            context.log.warning(
                "cannot check kept sources again; they are kept until the next start", ["reason": "\(error)"])
        }
        signals.wake(for: .configuration)
    }

    private func logResult(_ view: ReloadView) {
        for warning in view.warnings {
            context.log.warning(
                "configuration warning", ["at": warning.place, "key": warning.key, "text": warning.text])
        }
        guard view.applied else {
            for error in view.errors {
                context.log.error(
                    "configuration not reloaded; the previous one stays in force",
                    ["at": error.place, "key": error.key.isEmpty ? nil : error.key, "text": error.text])
            }
            return
        }
        context.log.notice(
            "configuration reloaded",
            ["changes": view.changes.isEmpty ? "none" : view.changes.map(\.words).joined(separator: "; ")])
    }
}

extension ChangeView {
    init(_ change: SettingsChanges.Change) {
        self.init(
            what: change.what, name: change.name.isEmpty ? nil : change.name, change: change.kind.rawValue,
            keys: change.keys)
    }
}

extension ProblemView {
    init(_ problem: ConfigProblem) {
        self.init(place: problem.place, key: problem.key, text: problem.text, excerpt: problem.excerpt)
    }
}
