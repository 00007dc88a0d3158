internal import API
internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Staging

/// New settings that were compared with those in force: the configuration to put in force, or the reasons against it.
/// It changes nothing.
struct PreparedReload {
    /// The result to answer with, also if nothing is changed.
    let view: ReloadView
    /// `nil` where the new settings cannot be put in force.
    let configuration: RuntimeConfiguration?

    /// - Parameter make: Makes a destination that is new or has changed.
    init(
        _ loaded: LoadedSettings, replacing old: RuntimeConfiguration, at now: WallTime,
        make: (DestinationSettings) throws -> any Destination
    ) {
        let warnings = loaded.warnings.map(ProblemView.init)
        let new = loaded.settings
        let changes = SettingsChanges(from: old.settings, to: new)
        var errors = changes.fixed.map {
            ProblemView(
                place: loaded.files.first?.display ?? "", key: $0.key,
                text: "cannot change from \($0.old) to \($0.new) while the daemon runs; "
                    + "restart to apply it, or restore the old value")
        }
        var configuration = RuntimeConfiguration(
            settings: new, staging: StagingArea(new.staging), destinations: [:], since: now)
        if errors.isEmpty {
            for destination in new.destinations {
                switch Self.destination(destination, old, make) {
                case .success(let made): configuration.destinations[destination.name] = made
                case .failure(let problem): errors.append(problem.view)
                }
            }
        }
        if errors.isEmpty {
            view = ReloadView(applied: true, changes: changes.changes.map(ChangeView.init), warnings: warnings)
            self.configuration = configuration
        } else {
            view = ReloadView(applied: false, errors: errors, warnings: warnings)
            self.configuration = nil
        }
    }

    private struct Problem: Error { let view: ProblemView }

    /// The destination in force if its remote is the same, else a new one.
    private static func destination(
        _ settings: DestinationSettings, _ old: RuntimeConfiguration,
        _ make: (DestinationSettings) throws -> any Destination
    ) -> Result<any Destination, Problem> {
        let before = old.settings.destination(named: settings.name)
        if let before, before.isSameRemote(as: settings), let made = old.destinations[settings.name] {
            return .success(made)
        }
        do { return .success(try make(settings)) } catch let error as UnusableSettingError {
            return .failure(
                Problem(
                    view: ProblemView(
                        place: settings.places.byKey[error.key] ?? settings.place,
                        key: "destinations.\(settings.name).\(error.key)", text: error.problem)))
        } catch {
            return .failure(
                Problem(
                    view: ProblemView(
                        place: settings.place, key: "destinations.\(settings.name)", text: "\(error)")))
        }
    }

    /// The destinations that were added, removed, or lead to another remote.
    static func changedDestinations(from old: RuntimeConfiguration, to new: RuntimeConfiguration) -> Set<String> {
        Set(old.destinations.keys).union(new.destinations.keys).filter { name in
            guard let before = old.settings.destination(named: name),
                let after = new.settings.destination(named: name)
            else { return true }
            return !before.isSameRemote(as: after)
        }
    }

    /// The folders of the old settings that have another `release_unsure` now, or are gone.
    static func foldersWithOtherReleaseUnsure(from old: Settings, to new: Settings) -> Set<String> {
        func values(_ settings: Settings) -> [String: UnsureReleaseRule?] {
            Dictionary(settings.folders.map { ($0.watch.name, $0.releaseUnsure) }, uniquingKeysWith: { $1 })
        }
        let (before, after) = (values(old), values(new))
        return Set(before.filter { after[$0.key] != $0.value }.keys)
    }
}
