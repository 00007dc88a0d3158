internal import Config
internal import Core
internal import Linux

/// The places that a report examines, from as much of the configuration as can be read.
struct ReportPlaces: Sendable {
    typealias Folder = (name: String, path: FilePath)

    private(set) var socket: FilePath
    private(set) var state: FilePath
    private(set) var staging: FilePath
    private(set) var folders: [Folder] = []
    /// Where the places come from, if not from a valid configuration.
    private(set) var origin: String?

    init(_ settings: Settings) {
        (socket, state, staging) = (settings.control.socket, settings.state, settings.staging.path)
        folders = settings.presentFolders.map { ($0.watch.name, $0.watch.path) }
    }

    /// For a configuration that is not valid, not readable or not there.
    init(_ errors: ConfigErrors?, of file: FilePath, _ environment: @Sendable (String) -> String?) {
        let usual = DefaultPlaces(for: file, environment: environment)
        if let places = errors?.places {
            (socket, state, staging) = (places.socket, places.state, places.staging)
            folders = places.folders.map { ($0.name, $0.path) }
            origin = "the places are those of the configuration as far as it can be read, or else the usual ones"
        } else {
            (socket, state) = (usual.socket, usual.state)
            staging = state.appending("staging")
            origin = "the configuration cannot be read: the places are the usual ones"
            if let text = try? Files.read(Files.real(file) ?? file, limit: 1 << 20) {
                take(String(decoding: text, as: UTF8.self))
            }
        }
        // The daemon may run with the text before the mistake.
        func isThere(_ path: FilePath) -> Bool { (try? FileStatus.ifPresent(at: path)) != nil }
        if !isThere(socket), isThere(usual.socket) { socket = usual.socket }
    }

    /// Takes the paths from a text that is no YAML: each that stands behind one of the keys.
    private mutating func take(_ text: String) {
        for line in text.split(separator: "\n") where line.drop(while: { $0 == " " }).first != "#" {
            for key in ["state:", "socket:", "path:"] {
                var rest = line[...]
                while let range = rest.firstRange(of: key) {
                    let isKey = rest[..<range.lowerBound].last.map { " {,-\t".contains($0) } ?? true
                    rest = rest[range.upperBound...]
                    let value = rest.drop { $0 == " " || $0 == "\"" || $0 == "'" }
                    guard isKey, value.first == "/" else { continue }
                    let path = FilePath(String(value.prefix { !" \t\"',}]#".contains($0) })).normalised
                    switch key {
                    case "state:": (state, staging) = (path, path.appending("staging"))
                    case "socket:": socket = path
                    default: folders.append((path.name.display, path))
                    }
                    origin =
                        "the configuration is no YAML: the places are those that stand behind `state:`, `socket:` and "
                        + "`path:`, or else the usual ones"
                }
            }
        }
    }

    mutating func use(socket: FilePath) { self.socket = socket }

    /// Adds the folders that the running daemon watches.
    mutating func add(_ others: [Folder]) {
        folders += others.filter { other in !folders.contains { $0.path == other.path } }
    }
}
