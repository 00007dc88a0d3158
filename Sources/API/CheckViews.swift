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
    /// The way to a destination, step by step; absent where no request was sent.
    package let steps: [CheckStep]?

    package init(about: String, name: String, _ result: CheckResult, steps: [CheckStep]? = nil) {
        self.steps = steps?.isEmpty == false ? steps : nil
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

/// One step of the way to a destination, as a check has met it.
package struct CheckStep: Codable, Sendable, Hashable {
    package enum Name: String, Codable, Sendable, CaseIterable {
        /// The lookup of the host's name.
        case name
        /// The connection: interface, addresses, proxy.
        case route
        case tls
        case server
        /// The server's clock, compared with this machine's.
        case clock
        case credentials
        /// The free space that the service reports.
        case room
        /// Whether uploads of the configured kind are possible.
        case flow
    }

    package let step: Name
    package let verdict: CheckResult.Verdict
    package let detail: String

    package init(step: Name, verdict: CheckResult.Verdict, detail: String) {
        self.step = step
        self.verdict = verdict
        self.detail = detail
    }
}
