/// What `busy` of one place of the configuration asks before anything goes: is the machine busy with something else?
package struct BusyRule: Hashable, Sendable {
    package var source: BusySource
    /// Between two runs of a command.
    package var every: Duration
    /// How long one run of a command may take.
    package var timeout: Duration

    package init(_ source: BusySource, every: Duration = .seconds(30), timeout: Duration = .seconds(10)) {
        self.source = source
        self.every = every
        self.timeout = timeout
    }
}

/// Who says whether the machine is busy. Two places that name the same one ask it once.
package enum BusySource: Hashable, Sendable {
    /// Busy for as long as something stands under this path.
    case file(FilePath)
    /// A program and its arguments: busy when it ends with status 0, not busy with 1.
    case command([String])

    package var isFile: Bool { if case .file = self { true } else { false } }

    /// For people: the path, or the program without its arguments, in which a secret may stand.
    package var name: String {
        switch self {
        case .file(let path): path.display
        case .command(let words): words.first ?? ""
        }
    }
}

/// What a source of `busy` has said.
package struct BusyWord: Hashable, Sendable {
    package enum Answer: Hashable, Sendable {
        case free, busy
        /// It said neither, and counts as busy: what it did, and what to do about it.
        case unknown(problem: String, remedy: String)
    }

    package var answer: Answer
    /// When it was first heard.
    package var since: WallTime

    package init(_ answer: Answer, since: WallTime) {
        self.answer = answer
        self.since = since
    }

    package var isFree: Bool { answer == .free }
}

extension PolicyRules {
    /// Who has not said that it is not busy holds: whoever was not asked yet as well.
    ///
    /// - Parameter place: Where it stands, for people.
    func busyHolds(_ place: String, in world: Admission.World) -> [Hold] {
        guard let source = busy?.source else { return [] }
        let (name, rule) = (source.name, "`busy` of \(place)")
        guard let word = world.busy[source] else {
            let verb = source.isFile ? "was not looked at yet" : "has not answered yet"
            return [Hold(.busy, since: world.now, text: "`\(name)` \(verb): \(rule)")]
        }
        switch word.answer {
        case .free: return []
        case .busy:
            let says = source.isFile ? "is there" : "says that it is busy"
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
