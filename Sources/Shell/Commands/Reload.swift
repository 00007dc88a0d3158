internal import API
internal import Control
internal import Core

extension Verb {
    static let reload: Verb = Verb(
        "reload", "make the daemon read its configuration again",
        details: [
            "All or nothing: a configuration with a mistake is refused, each mistake is shown with its place, and the "
                + "old one stays in force (status 78). A change of `state`, of `staging.path` or of a key of `control` "
                + "is refused too, because it needs a restart.",
            "Transfers that the change does not affect continue. Transfers to a changed destination stop within a "
                + "second, and resume with the bytes that the server has; secrets are read again.",
        ],
        options: Option.client,
        examples: [
            ("sluice reload", "Applies an edit, and shows what changed."),
            ("sluice check && sluice reload", "Checks the destinations first."),
            ("sluice reload --json", "For a script: `applied`, `changes`, `errors`, `warnings`."),
        ]
    ) { call in
        try await withReloadErrors(call) { client in
            try await reloadDaemon(client, call)
        }
    }
}

/// Makes the daemon read its configuration again, and prints its answer.
func reloadDaemon(_ client: ControlClient, _ call: Invocation) async throws -> ExitCode {
    let view = try await client.reload()
    if call.json {
        try call.printJSON(view)
        return view.applied ? .ok : .config
    }
    for warning in view.warnings { call.console.error(problemText(warning, isWarning: true)) }
    guard view.applied else {
        let mistakes = view.errors.map { problemText($0) }.joined(separator: "\n")
        var error = CommandError(.config, mistakes)
        error.isBare = true
        throw error
    }
    if view.changes.isEmpty { try call.console.line("reloaded; nothing changed") }
    for change in view.changes { try call.console.line(printable(change.words)) }
    return .ok
}

/// Without `--socket` the file itself names the socket, so a file with a mistake may fail before the daemon is asked.
private func withReloadErrors(_ call: Invocation, _ body: (ControlClient) async throws -> ExitCode) async throws
    -> ExitCode
{
    do { return try await call.withClient(body) } catch var error as CommandError where error.status == .config {
        error.remedy = "Nothing was reloaded: the old configuration stays in force."
        throw error
    } catch let error as ControlError {
        guard case .notRunning = error, !call.arguments.has("socket") else { throw error }
        // The file may name a new socket already, where no daemon listens yet.
        throw CommandError(
            ExitCode(error), "\(error)",
            remedy: error.remedy
                + " If `control.socket` was changed, use the old one with `sluice reload --socket OLD`; only a restart moves it."
        )
    }
}

/// In the form that `check` prints: place, key, problem, and the line with a caret.
private func problemText(_ problem: ProblemView, isWarning: Bool = false) -> String {
    let lines =
        [
            "\(problem.place): " + (isWarning ? "warning: " : "") + (problem.key.isEmpty ? "" : "\(problem.key): ")
                + problem.text
        ] + (problem.excerpt?.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) ?? [])
    return lines.map(printable).joined(separator: "\n")
}
