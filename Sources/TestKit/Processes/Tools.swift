package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// Third-party programs that tests and benchmarks use. `Tests/tools` lists them; `scripts/test-tools` makes them below
/// `.build/tools`. Nothing is installed.
package enum Tools {
    /// The root of unpacked Debian packages: none of their services is started, no file of the system changed. Their
    /// dependencies must be installed.
    ///
    /// Blocks its thread while it makes the tool; `make build-tests` has made those of `make test-full`.
    ///
    /// - Parameter name: The name in `Tests/tools`.
    /// - Returns: The folder that corresponds to `/`.
    package static func debian(_ name: String) throws -> FilePath { try folder(name) }

    /// A Python environment. Blocks its thread while it makes it.
    ///
    /// - Parameter name: The name in `Tests/tools`.
    /// - Returns: Its folder of programs (`…/bin`).
    package static func python(_ name: String) throws -> FilePath { try folder(name).appending("bin") }

    /// The folders of the libraries of unpacked packages, on Debian's machine types.
    package static func libraries(of root: FilePath) -> [FilePath] {
        ["x86_64-linux-gnu", "aarch64-linux-gnu"].flatMap { ["usr/lib/\($0)", "lib/\($0)"] }
            .map { root.appending(FilePath($0)) }
    }

    /// Thrown when the index of packages does not answer, so that the program is not available.
    package struct Unreachable: Error, CustomStringConvertible {
        package let description: String
    }

    /// What this process knows of each tool.
    private static let known = Mutex<[String: Result<FilePath, Unreachable>]>([:])

    private static func folder(_ name: String) throws -> FilePath {
        if let known = known.withLock({ $0[name] }) { return try known.get() }
        let output = TemporaryFolder()
        let child = try Child(
            Repository.root.appending("scripts/test-tools"), [name], environment: environment,
            output: output.path.appending("out"), errors: output.path.appending("err"))
        let ending = child.wait()
        let found: Result<FilePath, Unreachable>
        switch ending {
        case .status(0): found = .success(FilePath(String(try child.standardOutput().dropLast())))
        // sysexits(3), EX_TEMPFAIL: the script says so of an index that does not answer.
        case .status(75): found = .failure(Unreachable(description: try child.standardError()))
        default: throw Child.Ended(how: ending, errors: try child.standardError())
        }
        known.withLock { $0[name] = found }
        return try found.get()
    }

    /// On some machines pip is configured by the environment.
    private static var environment: [String: String] {
        var kept: [String: String] = [:]
        let names = ["PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_CERT", "PIP_NO_INDEX", "PIP_CONFIG_FILE", "SSL_CERT_FILE"]
        for name in names {
            if let value = getenv(name) { kept[name] = String(cString: value) }
        }
        return kept
    }
}
