package import Core
internal import Linux

/// The state folder and the socket where the configuration names none. The only place that decides it, for the daemon
/// and for its clients.
///
/// Configurations in `/etc/sluice` belong to the system: each has a folder in `/var/lib` and one in `/run`, for all
/// users. Any other configuration has the folders of the user who reads it (XDG Base Directory Specification); those of root
/// are the system's.
package struct DefaultPlaces: Hashable, Sendable {
    package private(set) var state: FilePath
    package private(set) var socket: FilePath
    /// The origin of each value that the environment decides, by its key: `$STATE_DIRECTORY`.
    private(set) var origins: [String: String] = [:]

    /// The folder of the system's configurations.
    private static let system: FilePath = "/etc/sluice"
    private static let systemConfiguration = system.appending("sluice.yaml")

    /// - Parameters:
    ///   - file: The configuration.
    ///   - user: The number of the user who reads it.
    package init(
        for file: FilePath, user: UInt32 = UserDatabase.user, environment: @Sendable (String) -> String?
    ) {
        let own = Self.instance(of: file) == nil && user != 0 ? OwnFolders(user: user, environment: environment) : nil
        if let own {
            state = own.state.path
            socket = (own.runtime?.path ?? state).appending("control.sock")
            origins["state"] = own.state.origin
            origins["control.socket"] = own.runtime == nil ? own.state.origin : own.runtime?.origin
        } else {
            let name = FilePath(bytes: Array("sluice".utf8) + (Self.instance(of: file) ?? []))
            state = FilePath("/var/lib").appending(name)
            socket = FilePath("/run").appending(name).appending("control.sock")
        }
        if let folder = Self.first(of: environment("STATE_DIRECTORY")) {
            state = folder
            origins["state"] = "$STATE_DIRECTORY"
        }
        if let folder = Self.first(of: environment("RUNTIME_DIRECTORY")) {
            socket = folder.appending("control.sock")
            origins["control.socket"] = "$RUNTIME_DIRECTORY"
        }
        origins["staging.path"] = origins["state"]
    }

    /// Whether the file is in `/etc/sluice`: its socket is known to a user who may not read it.
    package static func isOfSystem(_ file: FilePath) -> Bool { instance(of: file) != nil }

    /// The systemd service that reads the file: `sluice@NAME.service` for `/etc/sluice/NAME.yaml`, or else
    /// `sluice.service`.
    package static func unit(of file: FilePath) -> String {
        let instance = String(decoding: (instance(of: file) ?? []).dropFirst(), as: UTF8.self)
        return instance.isEmpty ? "sluice.service" : "sluice@\(instance).service"
    }

    /// The configuration of a command that names none: a user's own if there is one, else the system's; if there is
    /// neither, the place for one's own. Root has the system's.
    package static func configuration(
        user: UInt32 = UserDatabase.user, environment: @Sendable (String) -> String?
    ) -> FilePath {
        guard user != 0, let own = OwnFolders.configuration(environment) else { return systemConfiguration }
        func isThere(_ path: FilePath) -> Bool {
            // A file that may not be examined is there, and its reader reports the reason.
            do { return try FileStatus.ifPresent(at: path) != nil } catch { return true }
        }
        return isThere(own) || !isThere(systemConfiguration) ? own : systemConfiguration
    }

    /// The configuration that a user would write: the system's for root, and for a user without a home.
    package static func ownConfiguration(
        user: UInt32 = UserDatabase.user, environment: @Sendable (String) -> String?
    ) -> FilePath {
        user == 0 ? systemConfiguration : OwnFolders.configuration(environment) ?? systemConfiguration
    }

    /// The end of the names of its folders: empty for `/etc/sluice/sluice.yaml`, `-NAME` for `/etc/sluice/NAME.yaml`, as
    /// `sluice@NAME.service` has them; `nil` for a file elsewhere.
    private static func instance(of file: FilePath) -> [UInt8]? {
        let path = (file.isAbsolute ? file : Files.real(".")?.appending(file) ?? file).normalised
        guard path.parent == system else { return nil }
        if path == systemConfiguration { return [] }
        let name = path.name.bytes
        let stem = path.name.fileExtension == "yaml" ? name.dropLast(5) : name[...]
        return [UInt8(ascii: "-")] + stem
    }

    /// The first folder that systemd made for us (systemd.exec(5), `RuntimeDirectory=`): the variable may name several.
    private static func first(of variable: String?) -> FilePath? {
        guard let first = variable?.split(separator: ":").first else { return nil }
        return absolute(String(first))
    }

    fileprivate static func absolute(_ text: String?) -> FilePath? {
        text.flatMap { $0.hasPrefix("/") ? FilePath($0).normalised : nil }
    }
}

/// The folders of an ordinary user.
private struct OwnFolders {
    typealias Place = (path: FilePath, origin: String?)
    let state: Place
    /// `nil` where the user has none, as in a job of cron before any login.
    let runtime: Place?

    /// - Returns: `nil` for a user without a home, such as that of a container.
    init?(user: UInt32, environment: @Sendable (String) -> String?) {
        guard
            let state = Self.place("XDG_STATE_HOME", orInHome: ".local/state", environment)
        else { return nil }
        self.state = (state.path.appending("sluice"), state.origin)
        if let named = DefaultPlaces.absolute(environment("XDG_RUNTIME_DIR")), !Self.isForeign(named, user) {
            runtime = (named.appending("sluice"), "$XDG_RUNTIME_DIR")
        } else {
            // The same folder for a client without the variable, as in a job of cron.
            let usual = FilePath("/run/user/\(user)")
            // A folder that cannot be examined cannot be used.
            let isThere = (try? FileStatus(at: usual).isDirectory) ?? false
            runtime = isThere ? (usual.appending("sluice"), nil) : nil
        }
    }

    /// Whether the folder belongs to another user: `su` keeps the variable of the user before (XDG Base Directory
    /// Specification: the folder must belong to the user).
    private static func isForeign(_ path: FilePath, _ user: UInt32) -> Bool {
        // A folder that cannot be examined is reported when it is used.
        guard let owner = UserDatabase.owner(of: path) else { return false }
        return owner != user
    }

    static func configuration(_ environment: @Sendable (String) -> String?) -> FilePath? {
        place("XDG_CONFIG_HOME", orInHome: ".config", environment)?.path.appending("sluice/sluice.yaml")
    }

    /// The specification ignores paths that are not absolute.
    private static func place(
        _ variable: String, orInHome usual: FilePath, _ environment: @Sendable (String) -> String?
    ) -> Place? {
        if let named = DefaultPlaces.absolute(environment(variable)) { return (named, "$" + variable) }
        guard let home = DefaultPlaces.absolute(environment("HOME")), home != "/" else { return nil }
        return (home.appending(usual), nil)
    }
}
