internal import API
internal import Config
internal import Core
internal import Daemon
internal import Linux
internal import Synchronization

/// Checks what the daemon will use, with the rights of the service that will use it: what root can read says nothing about
/// another user.
struct ServiceExamination {
    let console: Console
    /// `nil` for the rights of this process: an ordinary user's own daemon, or a configuration that no service reads.
    let user: ServiceUser?

    /// - Parameters:
    ///   - draft: The configuration.
    ///   - destination: `nil` to leave destinations alone.
    /// - Throws: The error to report when something has failed; the findings are printed.
    func run(
        _ draft: FilePath, _ settings: Settings, folder: String, destination: String?, _ testFile: TestFileRule
    ) async throws {
        let status =
            if let user {
                try await run(as: user, draft, folder, destination, testFile)
            } else {
                try await runHere(settings, CheckRequest(folder: folder, destination: destination), testFile)
            }
        let whose = user.map { "the service (user `\(printable($0.name))`)" } ?? "the daemon"
        let remedy =
            "Nothing was written. Correct what failed or the answers, and run `sluice init` again; --offline does not "
            + "contact the destination."
        switch status {
        case .ok: return
        case .remote:
            throw CommandError(.remote, "\(whose) cannot send to the destination", remedy: remedy)
        default:
            throw CommandError(.config, "\(whose) cannot use what failed above", remedy: remedy)
        }
    }

    private func runHere(_ settings: Settings, _ request: CheckRequest, _ testFile: TestFileRule) async throws
        -> ExitCode
    {
        var findings = await Checks.standalone(settings, request)
        findings += await testFindings(settings, findings, testFile)
        for line in findingLines(findings, console) { try console.line(line) }
        return Invocation.status(of: findings)
    }

    /// Runs this program once more, as the user of the service.
    private func run(
        as user: ServiceUser, _ draft: FilePath, _ folder: String, _ destination: String?, _ testFile: TestFileRule
    ) async throws -> ExitCode {
        var words = ["/proc/self/exe", "check", "--folder", folder].map { Array($0.utf8) }
        words += [Array("--config".utf8), draft.bytes]
        if let destination {
            words += ["--destination", destination, "--test-file", testFile.rawValue].map { Array($0.utf8) }
        }
        // The home and the session of this user are not those of the service.
        let environment = Program.plainEnvironment.filter { variable in
            !["HOME=", "USER=", "XDG_RUNTIME_DIR="].contains { variable.hasPrefix($0) }
        }
        let program = Program(
            words: words, environment: environment + ["COLUMNS=\(console.width)"], folder: "/", user: user)
        let lines = OutputLines()
        let ending = try await blocking {
            try program.run(within: Self.limit, line: { lines.add($0, isComplaint: $1) }, isStopped: { false }).ending
        }
        for line in lines.all {
            if line.isComplaint { console.error(line.text) } else { try console.line(line.text) }
        }
        guard case .status(let number) = ending, let status = ExitCode(rawValue: number) else {
            throw CommandError(.failed, "the check as the user `\(printable(user.name))` did not end: \(ending)")
        }
        return status
    }

    private static let limit: Duration = .seconds(600)
}

/// What a program printed, in the order in which it came.
private final class OutputLines: Sendable {
    private let lines = Mutex<[(text: String, isComplaint: Bool)]>([])
    var all: [(text: String, isComplaint: Bool)] { lines.withLock { $0 } }
    func add(_ text: String, isComplaint: Bool) { lines.withLock { $0.append((text, isComplaint)) } }
}
