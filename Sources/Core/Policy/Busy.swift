/// The `busy` rule at one place of the configuration: uploads wait while the machine is busy with something else.
package struct BusyRule: Hashable, Sendable {
    package var source: BusySource
    /// Time between two runs of a command.
    package var every: Duration
    /// Time limit of one run of a command.
    package var timeout: Duration

    package init(_ source: BusySource, every: Duration = .seconds(30), timeout: Duration = .seconds(10)) {
        self.source = source
        self.every = every
        self.timeout = timeout
    }
}

/// A source that says whether the machine is busy. Two places that name the same source share it.
package enum BusySource: Hashable, Sendable {
    /// Busy while a file exists under this path.
    case file(FilePath)
    /// A program and its arguments: busy when it ends with status 0, not busy with 1.
    case command([String])

    package var isFile: Bool { if case .file = self { true } else { false } }

    /// The name for people: the path, or the program without its arguments, which may contain a secret.
    package var name: String {
        switch self {
        case .file(let path): path.display
        case .command(let words): words.first ?? ""
        }
    }
}

/// The last answer of a source of `busy`.
package struct BusyAnswer: Hashable, Sendable {
    package enum Answer: Hashable, Sendable {
        case free, busy
        /// The answer was invalid, and counts as busy: contains the problem and the remedy.
        case unknown(problem: String, remedy: String)
    }

    package var answer: Answer
    /// When this answer was first received.
    package var since: WallTime

    package init(_ answer: Answer, since: WallTime) {
        self.answer = answer
        self.since = since
    }

    package var isFree: Bool { answer == .free }
}

extension PolicyRules {
    /// Every source holds unless it has answered that the machine is not busy, including sources that were not checked
    /// yet.
    ///
    /// - Parameter place: The place of the rule, for people.
    func busyHolds(_ place: String, in inputs: Admission.PolicyInputs) -> [Hold] {
        guard let source = busy?.source else { return [] }
        let (name, rule) = (source.name, "`busy` of \(place)")
        guard let word = inputs.busy[source] else {
            let verb = source.isFile ? "was not checked yet" : "has not answered yet"
            return [Hold(.busy, since: inputs.now, text: "`\(name)` \(verb): \(rule)")]
        }
        switch word.answer {
        case .free: return []
        case .busy:
            let says = source.isFile ? "exists" : "reports busy"
            return [Hold(.busy, since: word.since, text: "`\(name)` \(says): \(rule)")]
        case .unknown(let problem, let remedy):
            return [
                Hold(
                    .busy, since: word.since,
                    text: "`\(name)` \(problem), which counts as busy; \(remedy): \(rule)")
            ]
        }
    }
}
