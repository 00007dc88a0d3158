internal import Config
internal import Core
internal import Destinations
internal import Linux

/// The configuration file of a verb, and its contents.
struct ConfigurationFile: Sendable {
    static let defaultPath: FilePath = "/etc/sluice/sluice.yaml"
    static let defaultSocket: FilePath = "/run/sluice/control.sock"

    let path: FilePath
    /// Whether a person named it; then it must exist.
    let isNamed: Bool

    /// `--config`, or `$SLUICE_CONFIG`, or `/etc/sluice/sluice.yaml`.
    init(_ arguments: Arguments, _ console: Console) {
        let named =
            arguments.path("config") ?? console.environment("SLUICE_CONFIG").flatMap { $0.isEmpty ? nil : FilePath($0) }
        path = named ?? Self.defaultPath
        isNamed = named != nil
    }

    /// - Parameter disk: `.unchecked` where only the text matters: another user may be unable to see the files that it
    ///   names.
    func load(disk: DiskChecks = .checked) async throws -> LoadedSettings {
        do { return try await read(disk: disk) } catch let errors as ConfigErrors {
            var error = CommandError(.config, "\(errors)")
            error.isBare = true
            throw error
        }
    }

    /// - Throws: `ConfigErrors`.
    func read(disk: DiskChecks = .checked) async throws -> LoadedSettings {
        let path = path
        return try await blocking { try Settings.load(path, types: DestinationTable.builtIn.map(\.type), disk: disk) }
    }

    /// A user who may use the socket may lack permission to read the configuration, which may name secrets.
    func socket() async throws -> FilePath {
        if !isNamed {
            do {
                _ = try Descriptor.open(path, for: .reading)
            } catch {
                if error.isMissing || error.isDenied { return Self.defaultSocket }
            }
        }
        return try await load(disk: .unchecked).settings.control.socket
    }
}
