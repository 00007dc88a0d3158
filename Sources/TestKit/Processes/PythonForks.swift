package import Core
internal import FoundationEssentials
internal import Glibc
internal import Linux
internal import Synchronization

/// Python programs of one virtual environment that run as forks of one interpreter (`Tests/Fixtures/fork_server.py`).
/// The interpreter has imported their packages, which takes a second of processor time each time.
package final class PythonForks: Sendable {
    /// One of these programs. It ends with the last reference.
    package final class Fork: Sendable {
        private let connection: Mutex<Wire?>
        private let port: Int

        fileprivate init(_ connection: Wire, _ port: Int) {
            self.connection = Mutex(connection)
            self.port = port
        }

        /// Ends it like a killed process: all its ports are closed.
        package func end() {
            guard let wire = connection.withLock({ wire in (wire, wire = nil).0 }) else { return }
            // The kernel closes the connection when the process ends, and the port at almost the same moment.
            wire.closeAndWait()
            for _ in 0..<5000 where Loopback.answers(port) { usleep(1000) }
        }
    }

    private struct ForkRequest: Encodable {
        let script: String
        let arguments: [String]
        let environment: [String: String]
        let output: String
        let errors: String
    }

    private let port: Int
    private let server: Child
    private static let all = Mutex<[String: Task<PythonForks, any Error>]>([:])

    /// The interpreter of this environment, which all tests of this process share.
    ///
    /// - Parameters:
    ///   - tool: As for ``Tools/python(_:)``.
    ///   - modules: Modules that are imported before the first fork, also from `Tests/Fixtures`.
    package static func of(_ tool: String, importing modules: [String]) async throws -> PythonForks {
        let shared = all.withLock { all in
            if let known = all[tool] { return known }
            let new = Task { try await PythonForks(tool, modules) }
            all[tool] = new
            return new
        }
        return try await shared.value
    }

    private init(_ tool: String, _ modules: [String]) async throws {
        let bin = try await blocking { try Tools.python(tool) }
        let port = try Loopback.freePort()
        let fixtures = Repository.root.appending("Tests/Fixtures")
        let server = try Child(
            bin.appending("python"),
            ["-B", fixtures.appending("fork_server.py").display, "\(port)", fixtures.display] + modules,
            output: "/dev/null", errors: "/dev/null")
        try await eventually("the interpreter has imported \(modules)", within: .seconds(60), every: .milliseconds(50))
        {
            guard server.ended == nil else { throw Wire.Broken(description: "it cannot import one of \(modules)") }
            return Loopback.answers(port)
        }
        (self.port, self.server) = (port, server)
    }

    /// Runs a server, and waits until it listens.
    ///
    /// - Parameters:
    ///   - script: An absolute path.
    ///   - port: The port that it listens on.
    ///   - output: Standard output is appended to it, and standard error to `errors`.
    package func run(
        _ script: FilePath, _ arguments: [String], at port: Int, environment: [String: String] = [:], output: FilePath,
        errors: FilePath
    ) async throws -> Fork {
        let wish = ForkRequest(
            script: script.display, arguments: arguments, environment: environment, output: output.display,
            errors: errors.display)
        let wire = try Wire(port: self.port)
        try await wire.send(Array(try JSONEncoder().encode(wish)) + [UInt8(ascii: "\n")])
        let fork = Fork(wire, port)
        try await eventually("\(script.name.display) listens", within: .seconds(30), every: .milliseconds(5)) {
            Loopback.answers(port)
        }
        return fork
    }
}
