package import Core
internal import Glibc
internal import Linux

/// A separate message bus for a test, and services on it that python-dbusmock simulates
/// (`Tests/Fixtures/network_mock.py`).
///
/// Debian's packages, unpacked under `.build/tools`; the machine's own bus is not used.
package final class PrivateBus {
    /// The reason that a test which needs it gives when it is skipped.
    package static let need =
        "Debian 12, /usr/bin/python3 and Debian's packages within reach: apt-get update && scripts/install-deps --tests && make test"

    /// Whether this machine supports one.
    package static let isPossible = Task { () -> Bool in
        do {
            let bus = try await PrivateBus()
            try await bus.start()
            try await bus.play(.networkManager).end()
            return true
        } catch { return false }
    }

    /// `unix:path=…`; the same after the bus was stopped and started again.
    package var address: String { "unix:path=\(socket.display)" }
    /// It does not exist before the bus is first started, and neither does its folder.
    package let socket: FilePath
    /// The folder of D-Bus service files for services that the bus may start.
    package let services: FilePath

    private let folder = TemporaryFolder()
    private let tools: FilePath
    private var daemon: Child?
    private var played = 0

    package init() async throws {
        tools = try await blocking {
            try Tools.debian("bus")
        }
        socket = folder.path.appending("run/bus")
        services = folder.path.appending("services")
        try Files.makeFolders(services)
    }

    deinit { stop() }

    /// Starts it, and returns when it accepts connections.
    package func start() async throws {
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <servicedir>\(services.display)</servicedir>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/>
                <allow eavesdrop="true"/>
                <allow own="*"/>
              </policy>
            </busconfig>
            """
        let file = try folder.write("bus.conf", Array(configuration.utf8))
        try Files.makeFolders(socket.parent)
        let output = folder.path.appending("bus.out")
        try Files.removeIfPresent(output)
        daemon = try Child(
            tools.appending("usr/bin/dbus-daemon"),
            ["--config-file=\(file.display)", "--nofork", "--nopidfile", "--nosyslog", "--print-address=1"],
            environment: environment, output: output, errors: folder.path.appending("bus.err"))
        _ = try await daemon?.line(after: "unix:")
    }

    /// Ends it and all its connections, and removes its socket, as at the end of a machine's own bus.
    package func stop() {
        daemon?.end(with: SIGKILL)
        daemon = nil
        try? Files.removeIfPresent(socket)  // the folder is removed in any case
    }

    /// Starts a service, and returns when it has its name.
    package func play(_ kind: MockService.Kind) async throws -> MockService {
        played += 1
        let place = folder.path.appending(FilePath("mock \(played)"))
        try Files.makeFolders(place)
        let pipe = place.appending("pipe")
        try systemCall("mkfifo", on: pipe.display) { pipe.withCString { mkfifo($0, 0o600) } }
        let child = try Child(
            "/usr/bin/python3", ["Tests/Fixtures/network_mock.py", address, kind.rawValue, pipe.display],
            environment: environment, output: place.appending("out"), errors: place.appending("err"))
        _ = try await child.line(after: "ready")
        return MockService(child: child, pipe: pipe)
    }

    private var environment: [String: String] {
        let libraries = Tools.libraries(of: tools)
        return [
            "LD_LIBRARY_PATH": libraries.map(\.display).joined(separator: ":"),
            "PYTHONPATH": tools.appending("usr/lib/python3/dist-packages").display,
            "GI_TYPELIB_PATH": libraries.map { $0.appending("girepository-1.0").display }.joined(separator: ":"),
            "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin",
        ]
    }
}

/// A service on a ``PrivateBus``.
package final class MockService {
    package enum Kind: String, Sendable {
        case networkManager = "networkmanager", modemManager = "modemmanager", nonsense
    }

    private let child: Child
    private let pipe: FilePath
    private var lineCount = 0

    fileprivate init(child: Child, pipe: FilePath) {
        self.child = child
        self.pipe = pipe
    }

    /// Makes it run a line of Python, with the functions of `network_mock.py`, and returns when that is done.
    package func runLine(_ line: String) async throws {
        lineCount += 1
        let order = Array("\(lineCount) \(line)\n".utf8)
        let file = try Descriptor.open(pipe, for: .updating)
        try file.write(order, named: pipe)
        let answer = try await eventually("the mock has run “\(line)”") { () -> String? in
            try child.requireRunning()
            return try child.standardOutput().split(separator: "\n").last {
                $0 == "done \(lineCount)" || $0.hasPrefix("failed \(lineCount) ")
            }.map(String.init)
        }
        guard answer == "done \(lineCount)" else { throw Refused(description: answer) }
    }

    /// Kills it, as in a crash.
    package func end() { child.end(with: SIGKILL) }

    package struct Refused: Error, CustomStringConvertible { package let description: String }
}
