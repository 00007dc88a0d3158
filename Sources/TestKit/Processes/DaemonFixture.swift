package import Core
internal import Glibc
internal import Linux

/// The built program as a user has it: a drop folder, a daemon, a receiver, all in a temporary folder on loopback.
///
/// One task uses it; both processes end with it.
package final class DaemonFixture {
    package enum Source: String, Sendable, CaseIterable { case keep, delete, move }

    package let binary: FilePath
    package let folder: TemporaryFolder
    package let source: Source
    package private(set) var daemon: Child?
    package private(set) var receiver: Child?
    /// The receiver's own address. The kernel chooses the port at the first start, and it is kept from then on.
    package var address = "127.0.0.1:0"
    /// The receiver's address, and the networks of both; the machine's own unless set.
    package var roads: TwoRoads? {
        didSet { if roads != nil { address = "\(TwoRoads.server):0" } }
    }

    /// The address that the daemon uploads to; `nil` for the receiver.
    package var destination: String?
    /// Additional keys of the destination, as YAML: `, checksum: sha1`.
    package var destinationKeys = ""
    /// Additional keys of the folder's `after_upload`, as `, for: 1h`.
    package var afterKeys = ""
    /// Additional words for the receiver's command line.
    package var receiverKeys: [String] = []
    /// The folder's destinations; `archive` is a folder of this machine, ``archive``.
    package var uploadTo = ["nas"]
    /// The mount that `archive` requires.
    package var archiveMount: FilePath = "/"
    /// Additional keys of `archive`, as YAML: `, taken: fail`.
    package var archiveKeys = ""

    /// Additional keys of the folder, as YAML, one on each line: `require: {file: .here}`.
    package var folderKeys: [String] = []
    /// Additional keys of its `settle`: `, marker: "{name}.ok"`.
    package var settleKeys = ""

    /// Additional keys of `policy`, as YAML, one on each line: `windows: ["22:00-06:00"]`.
    package var policyKeys: [String] = []

    /// Additional keys of `staging`, as YAML: `, keep_free: 0 B`.
    package var stagingKeys = ""
    /// Additional keys of `control`, each after a comma.
    package var controlKeys = ""

    /// Additional folders and destinations, as YAML, each on one line: `{name: exported, path: …}`; `other: {type: …}`.
    package var moreFolders: [String] = []
    package var moreDestinations: [String] = []

    /// Additional top-level keys, as YAML, one on each line: `metrics: {textfile: /x.prom}`.
    package var topKeys: [String] = []

    /// The text of the whole configuration, in place of the one that the keys above make. It needs the socket
    /// ``socket``, so that verbs find the daemon.
    package var wholeConfiguration: String?
    package var socket: FilePath { folder.path.appending("control.sock") }

    /// The watched folder, in which a camera would put files.
    package var drop: FilePath { place("drop") }
    /// A folder outside the drop folder, on its file system: files wait there to be renamed into it.
    package var beside: FilePath { places["drop", default: folder.path].appending("beside") }
    /// The folder to which `move` moves sources.
    package var done: FilePath { place("done") }
    /// The folder of files that the receiver got.
    package var received: FilePath { place("received") }
    /// The folder of the destination `archive`; made with the fixture.
    package var archive: FilePath { place("archive") }
    package var staging: FilePath { place("staging") }
    package var state: FilePath { place("state") }
    private let places: [String: FilePath]
    private func place(_ name: String) -> FilePath { places[name, default: folder.path].appending(FilePath(name)) }
    package var config: FilePath { folder.path.appending("sluice.yaml") }
    private var logs: FilePath { folder.path.appending("logs") }

    /// - Parameter places: The parents of the folders `drop`, `done`, `received`, `archive`, `staging` and `state`, by
    ///   their names, for separate disks; the others are made in the fixture's folder.
    package init(source: Source, binary: FilePath, places: [String: FilePath] = [:]) throws {
        self.source = source
        self.binary = binary
        self.places = places
        folder = TemporaryFolder()
        for path in [drop, beside, done, received, archive, staging, state, logs] {
            try Files.makeFolders(path)
            try Files.syncFolder(path.parent)
        }
    }

    /// Both end before the folder is removed: a running process would write into it again.
    deinit {
        killDaemon()
        killReceiver()
    }

    /// Starts the receiver, and tries again as long as another process holds its former port.
    package func startReceiver(environment: [String: String] = [:]) async throws {
        let child = try await eventually("the receiver listens") {
            // While it is killed the kernel gives its port to no other server, which the daemon would take for it.
            let listen = address.hasSuffix(":0") ? try "\(address.dropLast())\(Loopback.freePort())" : address
            let child = try self.start(
                "receiver", ["receive", "--listen", listen, "--into", received.display] + receiverKeys,
                environment: environment)
            do {
                let url = try await child.line(after: "listening on http://")
                address = String(url.prefix { $0 != "/" })
                return child
            } catch let error as Child.Ended where error.errors.contains("in use") {
                return nil
            }
        }
        receiver = child
    }

    /// The same in a separate mount namespace.
    ///
    /// - Parameter script: For /bin/sh, in the mount namespace, before the daemon, which replaces the shell.
    package func startDaemon(environment: [String: String] = [:], inMounts script: String) throws {
        try writeConfiguration()
        let words = [
            "-m", "/bin/sh", "-ec", "\(script)\nexec \"$@\"", "sh", binary.display, "run", "--config", config.display,
        ]
        let (output, errors) = (logs.appending("daemon.out"), logs.appending("daemon.err"))
        daemon =
            try roads.map {
                try $0.box.start(
                    "/usr/bin/unshare", words, environment: environment, output: output, errors: errors)
            } ?? Child("/usr/bin/unshare", words, environment: environment, output: output, errors: errors)
    }

    /// Starts the daemon, whose configuration contains the receiver's address. Does not wait until it is ready.
    package func startDaemon(environment: [String: String] = [:]) throws {
        try writeConfiguration()
        daemon = try start("daemon", ["run", "--config", config.display], environment: environment)
    }

    /// For a verb that is run without a daemon, or before it.
    package func writeConfiguration() throws { try Files.replace(config, with: Array(configuration.utf8)) }

    package func killDaemon() { daemon?.end(with: SIGKILL) }
    package func killReceiver() { receiver?.end(with: SIGKILL) }

    /// Stops the daemon and returns how it ended.
    ///
    /// - Throws: ``Overdue`` if it still runs after `limit`.
    package func stopDaemon(within limit: Duration = .seconds(20)) async throws -> Child.Ending? {
        guard let daemon else { return nil }
        daemon.send(SIGTERM)
        return try await daemon.end(within: limit)
    }

    /// Runs another verb with this configuration, and returns its output.
    ///
    /// - Returns: `nil` when its exit status was not 0, as when the daemon does not answer yet.
    package func runVerb(_ verb: String, _ arguments: [String] = []) async throws -> String? {
        let unique = FilePath("\(verb)-\(hexadecimal(Random.bytes(6)))")
        let output = logs.appending(unique)
        let errors = FilePath(bytes: output.bytes + Array(".err".utf8))
        defer {
            for path in [output, errors] {
                try? Files.removeIfPresent(path)  // the folder is removed with the fixture; this only keeps it small
            }
        }
        let child = try Child(
            binary, [verb, "--config", config.display] + arguments, output: output, errors: errors)
        do {
            guard try await child.end(within: .seconds(20)) == .status(0) else { return nil }
            return try child.standardOutput()
        } catch let overdue as Overdue {
            throw Silent(words: [verb] + arguments, overdue: overdue, lastWords: lastWords())
        }
    }

    /// Thrown when a verb has not ended in time.
    package struct Silent: Error {
        package let words: [String]
        package let overdue: Overdue
        package let lastWords: String
    }

    /// The last lines of both processes, for the report of a failure.
    package func lastWords() -> String {
        [daemon, receiver].compactMap { child in
            guard let child else { return nil }
            // A log that cannot be read must not hide the failure that it would explain.
            let text = (try? child.standardError()) ?? ""
            return "\(child.errors.name): …\(text.suffix(3000))"
        }.joined(separator: "\n")
    }

    private func start(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws -> Child {
        let (output, errors) = (logs.appending(FilePath("\(name).out")), logs.appending(FilePath("\(name).err")))
        // A line of an earlier run must not be taken for one of this run.
        try Files.removeIfPresent(output)
        guard let network = name == "receiver" ? roads?.site : roads?.box else {
            return try Child(binary, arguments, environment: environment, output: output, errors: errors)
        }
        return try network.start(binary, arguments, environment: environment, output: output, errors: errors)
    }

    /// Waits are short, so that a killed peer costs a test little time; everything else is as a user would have it.
    private var configuration: String {
        if let wholeConfiguration { return wholeConfiguration }
        let after =
            switch source {
            case .keep, .delete: "{source: \(source.rawValue)\(afterKeys)}"
            case .move: "{source: move, to: \"\(done.display)/{relative}\"}"
            }
        let url = destination ?? "http://\(address)/files/"
        let lines = [
            "nas": "  nas: {type: tus, url: \"\(url)\"\(destinationKeys)}",
            "archive":
                "  archive: {type: directory, path: \(archive.display), mount: \(archiveMount.display)\(archiveKeys)}",
        ]
        return """
            version: 1
            state: \(state.display)
            staging: {path: \(staging.display), memory: allow\(stagingKeys)}
            folders:
              - name: camera
                path: \(drop.display)
                settle: {quiet_for: 200ms\(settleKeys)}
                remote_name: "{relative}"
                upload_to: [\(uploadTo.joined(separator: ", "))]
                after_upload: \(after)\(folderKeys.map { "\n    " + $0 }.joined())\(moreFolders.map { "\n  - " + $0 }.joined())
            destinations:
            \((uploadTo.compactMap { lines[$0] } + moreDestinations.map { "  " + $0 }).joined(separator: "\n"))
            policy:
              concurrency: {total: 4, per_destination: 4}
              retry: {first: 100ms, max: 1s}\(policyKeys.map { "\n  " + $0 }.joined())
            control: {socket: \(socket.display)\(controlKeys)}\(topKeys.map { "\n" + $0 }.joined())

            """
    }
}
