package import Core

/// The result of one check.
package struct CheckFinding: Codable, Sendable, Hashable {
    /// `config`, `folder`, `staging`, `state`, `control`, `metrics`, `busy`, `hook`, `network`, `destination`,
    /// `rights`, `test`; with `doctor` also `kernel`, `mount`, `clock`, `power`, `secret`, `daemon`.
    package let about: String
    package let name: String
    package let verdict: CheckResult.Verdict
    package let detail: String
    /// The destination's report of its free space.
    package let space: SpaceView?

    package init(about: String, name: String, _ result: CheckResult) {
        self.about = about
        self.name = name
        verdict = result.verdict
        detail = result.detail
        space = result.space.map { SpaceView($0, askedAt: nil) }
    }
}

/// The results of all checks.
package struct CheckReport: Codable, Sendable, Hashable {
    /// Whether nothing has failed. Warnings do not count.
    package let ok: Bool
    package let checks: [CheckFinding]

    package init(_ checks: [CheckFinding]) {
        ok = !checks.contains { $0.verdict == .failed }
        self.checks = checks
    }
}

/// The subjects of a check: everything, one folder, one destination, or both of them.
package struct CheckRequest: Codable, Sendable, Hashable {
    package var folder: String?
    package var destination: String?

    package init(folder: String? = nil, destination: String? = nil) {
        self.folder = folder
        self.destination = destination
    }

    package var isAll: Bool { folder == nil && destination == nil }
    package func includes(folder name: String) -> Bool { isAll || folder == name }
    package func includes(destination name: String) -> Bool { isAll || destination == name }
}
