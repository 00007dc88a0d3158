internal import Config
internal import Core
internal import Destinations
internal import Linux

/// The configuration file of a verb, and its contents.
struct ConfigurationFile: Sendable {
    let path: FilePath
    /// Whether a person named it; then it must exist.
    let isNamed: Bool

    private let environment: @Sendable (String) -> String?

    /// `--config`, or `$SLUICE_CONFIG`, or the default of ``DefaultPlaces``.
    init(_ arguments: Arguments, _ console: Console) {
        let named =
            arguments.path("config") ?? console.environment("SLUICE_CONFIG").flatMap { $0.isEmpty ? nil : FilePath($0) }
        environment = console.environment
        path = named ?? DefaultPlaces.configuration(environment: environment)
        isNamed = named != nil
    }

    /// A file that no option names.
    init(path: FilePath, _ console: Console) {
        self.path = path
        environment = console.environment
        isNamed = true
    }

    /// - Parameter disk: `.unchecked` where only the text matters: another user may be unable to see the files that it
    ///   names.
    func load(disk: DiskChecks = .checked) async throws -> LoadedSettings {
        do { return try await read(disk: disk) } catch let errors as ConfigErrors { throw Self.failure(errors) }
    }

    /// As the service reads it, with the defaults of the system, also when a user runs the verb.
    func loadAsService() async throws -> LoadedSettings {
        let path = path
        do {
            return try await blocking {
                try Settings.load(
                    path, types: DestinationTable.builtIn.map(\.type), disk: .unchecked, user: 0,
                    environment: { _ in nil })
            }
        } catch let errors as ConfigErrors { throw Self.failure(errors) }
    }

    private static func failure(_ errors: ConfigErrors) -> CommandError {
        var error = CommandError(.config, "\(errors)")
        error.isBare = true
        return error
    }

    /// - Parameter draft: A file that may replace this one, and is read in its place.
    /// - Throws: `ConfigErrors`.
    func read(draft: FilePath? = nil, disk: DiskChecks = .checked) async throws -> LoadedSettings {
        let path = path
        return try await blocking {
            try Settings.load(path, draft: draft, types: DestinationTable.builtIn.map(\.type), disk: disk)
        }
    }

    /// A user who may use the socket may lack permission to read the configuration, which may name secrets.
    func socket() async throws -> FilePath {
        do {
            _ = try Descriptor.open(path, for: .reading)
        } catch {
            if !isNamed && error.isMissing || DefaultPlaces.isOfSystem(path) && error.isDenied {
                return DefaultPlaces(for: path, environment: environment).socket
            }
        }
        do { return try await load(disk: .unchecked).settings.control.socket } catch let error as CommandError {
            // The daemon runs with the text before the mistake, and a person must reach it: also to let it refuse this one.
            guard let socket = usualSocket else { throw error }
            return socket
        }
    }

    /// The socket of the service that reads this file, if there is one. Elsewhere several files share a socket by default.
    private var usualSocket: FilePath? {
        guard DefaultPlaces.isOfSystem(path) || environment("RUNTIME_DIRECTORY") != nil else { return nil }
        let socket = DefaultPlaces(for: path, environment: environment).socket
        return (try? FileStatus.ifPresent(at: socket)) == nil ? nil : socket
    }
}
