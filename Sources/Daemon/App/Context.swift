internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Staging
internal import Store
internal import Synchronization

/// The configuration in force with its destinations. A reload replaces it as one value, so that every reader sees
/// either the old or the new one whole.
struct RuntimeConfiguration: Sendable {
    var settings: Settings
    var staging: StagingArea
    var destinations: [String: any Destination]
    /// The questions that the masks of files answer.
    var questions = FileQuestions()
    /// The time since which it is in force.
    var since: WallTime
}

/// Holds the configuration in force. A caller that needs several of its values reads ``value`` once.
final class CurrentConfiguration: Sendable {
    private let current: Mutex<RuntimeConfiguration>

    init(_ configuration: RuntimeConfiguration) { current = Mutex(configuration) }

    var value: RuntimeConfiguration { current.withLock { $0 } }
    var settings: Settings { value.settings }

    func replace(_ configuration: RuntimeConfiguration) { current.withLock { $0 = configuration } }

    /// The folder with a name; also the one of the files that programs hand over.
    func folder(_ name: String) -> FolderSettings? { settings.folder(name) }

    /// The names of all folders that uploads may come from.
    var folderNames: [String] { settings.folders.map(\.watch.name) + [FolderSettings.received.watch.name] }

    /// The names that a request may contain.
    var names: KnownNames {
        let settings = settings
        let cards = Dictionary(grouping: settings.folders.compactMap(\.card), by: \.pattern)
        return KnownNames(
            folders: folderNames, destinations: settings.destinations.map(\.name),
            patterns: Dictionary(
                settings.patternFolders.map { ($0.watch.name, cards[$0.watch.name, default: []].map(\.name)) },
                uniquingKeysWith: { first, _ in first }))
    }

    func settings(ofDestination name: String) -> DestinationSettings? { settings.destination(named: name) }

    /// How long to wait between attempts for a destination: its own setting, else the folder's, else the global one.
    func retry(folder: String, destination: String) -> Backoff {
        settings(ofDestination: destination)?.policy.retry ?? self.folder(folder)?.policy.retry ?? settings.policy.retry
    }
}

/// The values that nearly every component needs: the database, the clocks, the log, and the configuration in force.
struct Context: Sendable {
    let store: Store
    let clocks: any Clocks
    let log: Log
    let configuration: CurrentConfiguration
    /// They are hidden in what programs print.
    let secrets = KnownSecrets()

    var settings: Settings { configuration.settings }
    var staging: StagingArea { configuration.value.staging }
    var destinations: [String: any Destination] { configuration.value.destinations }
}
