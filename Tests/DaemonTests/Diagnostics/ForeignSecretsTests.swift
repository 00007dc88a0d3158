import API
import Core
import Credentials
import Testing

@testable import Config
@testable import Daemon

/// Secrets that a check from a shell cannot have.
@Suite("Secrets of the daemon's process")
struct ForeignSecretsTests {
    private func error(_ source: SecretSource) async throws -> SecretError {
        do { _ = try await SecretReader(variable: { _ in nil }).read(source) } catch { return error }
        throw ReadError()
    }

    private struct ReadError: Error {}

    @Test("a missing variable or credential is no failure of a check from a shell, which says who has it")
    func foreign() async throws {
        for source in [SecretSource.environment("NAS_TOKEN"), .credential("nas-token")] {
            let error = try await error(source)
            let text = "token: \(error)"
            let step = CheckStep(step: .credentials, verdict: .failed, detail: text)
            let finding = CheckFinding(about: "destination", name: "nas", CheckResult(.failed, text), steps: [step])
            let judged = ForeignSecrets.judged(finding, after: [error])
            #expect(judged.verdict == .warning && judged.steps?.first?.verdict == .warning)
            for detail in [judged.detail, judged.steps?.first?.detail ?? ""] {
                #expect(detail.hasPrefix("token: ") && detail.contains("check --running"), "\(detail)")
                #expect(detail.lowercased().contains("nas"), "\(detail)")
                #expect(!detail.contains("cannot be used"), "\(detail)")
            }
        }
    }

    @Test("any other failure stays one")
    func others() async throws {
        let foreign = try await error(.environment("NAS_TOKEN"))
        for error in [try await error(.literal("")), try await error(.file("/nowhere/at/all"))] {
            let finding = CheckFinding(about: "destination", name: "nas", CheckResult(.failed, "\(error)"))
            #expect(ForeignSecrets.judged(finding, after: [error, foreign]) == finding, "\(error)")
        }
        let finding = CheckFinding(about: "destination", name: "nas", CheckResult(.failed, "no connection"))
        #expect(ForeignSecrets.judged(finding, after: [foreign]) == finding)
    }

    @Test("a check from a shell knows which variables of the configuration it lacks")
    func variables() async throws {
        var settings = try ComponentScene.settings(in: "/none")
        let headers: [String: SecretSource] = ["X": .file("/none"), "Y": .environment("PATH")]
        settings.destinations = [
            DestinationSettings(
                name: "nas", type: "tus",
                values: ["token": .secret(.environment("SLUICE_NO_SUCH_VARIABLE")), "headers": .map(headers)],
                policy: PolicyOverrides(), place: "")
        ]
        #expect(await ForeignSecrets.errors(in: settings).map(\.lackingPart) == [.environment])
    }
}
