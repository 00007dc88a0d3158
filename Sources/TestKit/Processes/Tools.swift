package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// Third-party programs that tests and benchmarks use, kept under `.build/tools`. Nothing is installed.
package enum Tools {
    /// The contents of Debian packages, unpacked on first use: none of their services is started, no file of the system
    /// changed. Their dependencies must be installed.
    ///
    /// - Parameter name: Name of the folder, if the list is too long for a name; another list needs another.
    /// - Returns: The folder that corresponds to `/`.
    package static func debian(_ packages: [String], called name: String? = nil) throws -> FilePath {
        try once(name.map { [$0] } ?? packages) { folder, log in
            try Files.makeFolders(folder, mode: 0o755)
            // apt-get downloads into its working directory.
            let script = """
                cd "$1" && shift && apt-get download -q "$@" && for package in *.deb; do
                dpkg-deb -x "$package" . || exit 1; done
                """
            try run("/bin/sh", ["-c", script, "sh", folder.display] + packages, log)
        }
    }

    /// The folders of the libraries of unpacked packages, on Debian's machine types.
    package static func libraries(of root: FilePath) -> [FilePath] {
        ["x86_64-linux-gnu", "aarch64-linux-gnu"].flatMap { ["usr/lib/\($0)", "lib/\($0)"] }
            .map { root.appending(FilePath($0)) }
    }

    /// A Python virtual environment with these packages.
    ///
    /// - Parameter packages: With versions, `name==1.2`.
    /// - Returns: Its folder of programs (`…/bin`).
    package static func venv(_ packages: [String]) throws -> FilePath {
        try once(packages) { folder, log in
            try run("/usr/bin/env", ["python3", "-m", "venv", "--clear", folder.display], log)
            try run(
                folder.appending("bin/pip"), ["install", "-q", "--retries", "2", "--timeout", "10"] + packages, log)
        }.appending("bin")
    }

    /// Thrown when the index of packages does not answer, so that the program is not available.
    package struct Unreachable: Error, CustomStringConvertible {
        package let packages: [String]
        package let reason: String
        package var description: String {
            "the index of packages does not answer, and \(packages.joined(separator: ", ")) is not here yet: \(reason)"
        }
    }

    /// Messages of pip and apt-get about an index that does not answer. Any other failure is a fault.
    private static let silence = [
        "Retrying (Retry(", "Temporary failure resolving", "Could not resolve", "Could not connect",
        "Connection timed out",
        "Unable to connect",
    ]

    /// The message about the index that did not answer, in this process.
    private static let silent = Mutex<String?>(nil)

    /// - Returns: The folder that `make` has filled, now or earlier.
    private static func once(
        _ packages: [String], _ make: (_ folder: FilePath, _ log: FilePath) throws -> Void
    ) throws -> FilePath {
        let name = packages.joined(separator: "+").map { $0.isLetter || $0.isNumber || $0 == "." ? $0 : "-" }
        let tools: FilePath = ".build/tools"
        try Files.makeFolders(tools, mode: 0o755)
        let here = try tools.absolute()
        let folder = here.appending(FilePath(String(name)))
        let ready = folder.appending("ready")
        // Test processes run in parallel, and only one may make it.
        let lock = try Descriptor.open(here.appending("lock"), for: .updating)
        try lock.withNumber { number throws in _ = try systemCall("flock", on: "tools") { flock(number, LOCK_EX) } }
        if try FileStatus.ifPresent(at: ready) == nil {
            // Each request to a silent index takes its time, and one was made already.
            if let reason = silent.withLock({ $0 }) { throw Unreachable(packages: packages, reason: reason) }
            do { try make(folder, here.appending(FilePath(String(name) + ".log"))) } catch let failure as Child.Ended {
                let line = failure.errors.split(separator: "\n").first { line in silence.contains { line.contains($0) }
                }
                guard let line else { throw failure }
                silent.withLock { $0 = String(line) }
                throw Unreachable(packages: packages, reason: String(line))
            }
            try Files.replace(ready, with: [])
        }
        return folder
    }

    private static func run(_ program: FilePath, _ arguments: [String], _ log: FilePath) throws {
        let child = try Child(program, arguments, environment: kept, output: log, errors: log)
        // Only while the tools are made, once on each machine; nothing else can run before they are.
        while child.ended == nil { usleep(20_000) }
        guard child.ended == .status(0) else {
            throw Child.Ended(how: child.ended ?? .signal(0), errors: try child.complained())
        }
    }

    /// On some machines pip is configured by the environment.
    private static var kept: [String: String] {
        var kept: [String: String] = [:]
        let names = ["PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_CERT", "PIP_NO_INDEX", "PIP_CONFIG_FILE", "SSL_CERT_FILE"]
        for name in names {
            if let value = getenv(name) { kept[name] = String(cString: value) }
        }
        return kept
    }
}

extension FilePath {
    /// As an absolute path, symbolic links resolved.
    fileprivate func absolute() throws -> FilePath {
        guard let resolved = withCString({ realpath($0, nil) }) else {
            throw SystemError(call: "realpath", subject: display, code: errno)
        }
        defer { free(resolved) }
        return FilePath(String(cString: resolved))
    }
}
