/// The result of a check of one thing: `ok` with the findings, or the problem and the remedy.
package struct CheckResult: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable, Codable { case ok, warning, failed }
    package var verdict: Verdict
    package var detail: String
    /// The space that a destination reported.
    package var space: RemoteSpace?
    /// The subjects of ``detail`` that a destination reports one by one.
    package var parts: [Part] = []

    /// One subject of a check.
    package struct Part: Hashable, Sendable {
        package enum Subject: Hashable, Sendable {
            case credentials
            /// Whether uploads of the configured kind are possible.
            case flow
        }

        package var subject: Subject
        package var verdict: Verdict
        package var detail: String

        package init(_ subject: Subject, _ verdict: Verdict, _ detail: String) {
            (self.subject, self.verdict, self.detail) = (subject, verdict, detail)
        }
    }

    package init(_ verdict: Verdict, _ detail: String, space: RemoteSpace? = nil, parts: [Part] = []) {
        self.verdict = verdict
        self.detail = detail
        self.space = space
        self.parts = parts
    }

    /// The same, whose whole sentence is also what is known of one subject.
    package func about(_ subject: Part.Subject) -> CheckResult {
        var result = self
        result.parts.append(Part(subject, verdict, detail))
        return result
    }
}
