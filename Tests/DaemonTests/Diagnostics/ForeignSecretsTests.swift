import API
import Core
import Credentials
import Daemon
import Testing

/// Secrets that a check from a shell cannot have.
@Suite("Secrets of the daemon's process")
struct ForeignSecretsTests {
    private func text(_ source: SecretSource) async -> String {
        do {
            _ = try await SecretReader(variable: { _ in nil }).read(source)
            return ""
        } catch { return "\(error)" }
    }

    @Test("a missing variable or credential is no failure of a check from a shell, which says who has it")
    func foreign() async {
        for source in [SecretSource.environment("NAS_TOKEN"), .credential("nas-token")] {
            let text = "token: \(await text(source))"
            let step = CheckStep(step: .credentials, verdict: .failed, detail: text)
            let finding = CheckFinding(about: "destination", name: "nas", CheckResult(.failed, text), steps: [step])
            let judged = ForeignSecrets.judged(finding)
            #expect(judged.verdict == .warning && judged.steps?.first?.verdict == .warning)
            for detail in [judged.detail, judged.steps?.first?.detail ?? ""] {
                #expect(detail.hasPrefix("token: ") && detail.contains("check --running"), "\(detail)")
                #expect(detail.lowercased().contains("nas"), "\(detail)")
                #expect(!detail.contains("cannot be used"), "\(detail)")
            }
        }
    }

    @Test("any other failure stays one")
    func others() async {
        for text in [await text(.literal("")), await text(.file("/nowhere/at/all")), "no connection"] {
            let finding = CheckFinding(about: "destination", name: "nas", CheckResult(.failed, text))
            #expect(ForeignSecrets.judged(finding) == finding, "\(text)")
        }
    }
}
