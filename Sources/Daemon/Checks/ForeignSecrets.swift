package import API
internal import Config
internal import Core
package import Credentials

/// Secrets of the daemon's process: its environment and its credentials of systemd. A process of a shell has others, and
/// cannot judge them.
package enum ForeignSecrets {
    /// Why variables and credentials of a configuration cannot be read by this process.
    static func errors(in settings: Settings) async -> [SecretError] {
        let reader = SecretReader()
        var errors: [SecretError] = []
        for source in Set(ConfiguredSecrets(of: settings).sources) {
            switch source {
            case .environment, .credential:
                do throws(SecretError) { _ = try await reader.read(source) } catch { errors.append(error) }
            default: break
            }
        }
        return errors
    }

    /// The finding of a process that is not the daemon. A secret that only the daemon can have is no failure.
    ///
    /// - Parameter errors: Why secrets cannot be read by this process.
    package static func judged(_ finding: CheckFinding, after errors: [SecretError]) -> CheckFinding {
        guard finding.verdict == .failed, let detail = excused(finding.detail, errors) else { return finding }
        let steps = finding.steps?.map { step -> CheckStep in
            guard step.verdict == .failed, let detail = excused(step.detail, errors) else { return step }
            return CheckStep(step: step.step, verdict: .warning, detail: detail)
        }
        return CheckFinding(about: finding.about, name: finding.name, CheckResult(.warning, detail), steps: steps)
    }

    /// - Returns: `nil` for a text about something else.
    private static func excused(_ text: String, _ errors: [SecretError]) -> String? {
        for error in errors {
            guard let part = error.lackingPart, let place = text.firstRange(of: error.reason) else { continue }
            return text[..<place.lowerBound]
                + "the secret from \(error.source) cannot be judged from this shell: the daemon has its own "
                + "\(part.rawValue), and `sluice check --running` asks it"
        }
        return nil
    }
}
