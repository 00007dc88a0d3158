package import API
internal import Core

/// Secrets of the daemon's process: its environment and its credentials of systemd. A process of a shell has others, and
/// cannot judge them.
package enum ForeignSecrets {
    /// The finding of a process that is not the daemon. A secret that only the daemon can have is no failure.
    package static func judged(_ finding: CheckFinding) -> CheckFinding {
        guard finding.verdict == .failed, let detail = excused(finding.detail) else { return finding }
        let steps = finding.steps?.map { step -> CheckStep in
            guard step.verdict == .failed, let detail = excused(step.detail) else { return step }
            return CheckStep(step: step.step, verdict: .warning, detail: detail)
        }
        return CheckFinding(about: finding.about, name: finding.name, CheckResult(.warning, detail), steps: steps)
    }

    /// - Returns: `nil` for a text about something else.
    private static func excused(_ text: String) -> String? {
        for (source, problem, place) in [
            ("the environment variable ", "it is not set", "its own environment"),
            ("the systemd credential ", "no credentials were passed to this process", "its own credentials"),
        ] {
            guard let start = text.firstRange(of: "the secret from " + source),
                let middle = text[start.upperBound...].firstRange(of: " cannot be used: " + problem)
            else { continue }
            let name = text[start.upperBound..<middle.lowerBound]
            return text[..<start.lowerBound]
                + "the secret from \(source)\(name) cannot be judged from this shell: the daemon has \(place), and "
                + "`sluice check --running` asks it"
        }
        return nil
    }
}
