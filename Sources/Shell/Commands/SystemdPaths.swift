internal import Config
internal import Core
internal import Destinations
internal import Linux

extension Verb {
    static let systemdPaths: Verb = Verb(
        "systemd-paths", "print the systemd drop-in that lets the service write to the configured folders",
        details: [
            "The systemd unit makes every folder read-only, and hides those in /home. This prints the paths that the "
                + "service needs beyond that: folders whose sources are deleted or moved, the targets of moves, "
                + "`directory` destinations, and staging, state and other files outside of the service's own folders. "
                + "A folder and the target of its moves get one path that holds both, because systemd mounts each "
                + "path separately, and a move between two mounts is a copy.",
            "With --install it writes the drop-in to /etc/systemd/system, as paths.conf for sluice.service; for "
                + "/etc/sluice/NAME.yaml, for sluice@NAME.service. It changes no rights of files: the service's user "
                + "needs them as before.",
            "Exits with status 78 when the configuration has a mistake, or names a folder that the service must not "
                + "write to.",
        ],
        options: [.config, Option(flag: "install", "write the drop-in instead of printing it")],
        examples: [
            ("sluice systemd-paths", "Prints the drop-in."),
            ("sudo sluice systemd-paths --install", "Writes it where systemd reads it."),
        ]
    ) { call in
        let file = ConfigurationFile(call.arguments, call.console)
        let settings = try await file.loadAsService().settings
        let paths: UnitPaths
        do { paths = try UnitPaths(settings, file: file.path) } catch {
            throw CommandError(.config, "\(error)")
        }
        let text = paths.dropIn(for: try absolute(file.path))
        guard call.arguments.has("install") else {
            try call.console.raw(text)
            return .ok
        }
        let place = try await blocking { try SystemdDropIn.install(text, for: paths.unit) }
        for note in paths.notes { try call.console.line("\(note).") }
        try call.console.line(
            "wrote \(place.display); it takes effect with: systemctl daemon-reload && systemctl restart \(paths.unit)")
        return .ok
    }
}

/// The drop-in with the paths of a unit.
enum SystemdDropIn {
    /// Where administrators keep their units (systemd.unit(5)).
    static let units: FilePath = "/etc/systemd/system"

    /// - Returns: The file.
    static func install(_ text: String, for unit: String, in units: FilePath = units) throws -> FilePath {
        let place = units.appending(FilePath("\(unit).d/paths.conf"))
        // One that cannot be read cannot be replaced either, and the next step reports it.
        if let there = try? Files.read(place), !there.starts(with: Array(UnitPaths.beginning.utf8)) {
            throw CommandError(
                .conflict, "\(place.display) was not made by Sluice, so it is not replaced",
                remedy: "Move its settings to a file beside it, such as override.conf, and remove it. Then run "
                    + "`sluice systemd-paths --install`.")
        }
        do throws(SystemError) {
            try Files.makeFolders(place.parent, mode: 0o755, durably: true)
            try Files.replace(place, with: Array(text.utf8), mode: 0o644)
        } catch {
            throw CommandError(
                .failed, "\(error)",
                remedy: error.isDenied ? "Run it as root: sudo sluice systemd-paths --install" : nil)
        }
        return place
    }
}
