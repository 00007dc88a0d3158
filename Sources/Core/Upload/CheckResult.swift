/// The result of a check of one thing: `ok` with the findings, or the problem and the remedy.
package struct CheckResult: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable, Codable { case ok, warning, failed }
    package var verdict: Verdict
    package var detail: String
    /// The space that a destination reported.
    package var space: RemoteSpace?

    package init(_ verdict: Verdict, _ detail: String, space: RemoteSpace? = nil) {
        self.verdict = verdict
        self.detail = detail
        self.space = space
    }
}
