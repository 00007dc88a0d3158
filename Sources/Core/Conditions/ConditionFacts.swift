/// What a condition is judged by: the facts of one moment, one class of uploads and one route.
package struct ConditionFacts: Sendable {
    /// How bytes would leave this machine.
    package enum Way: Sendable {
        /// They stay on it.
        case local
        /// Over this route.
        case over(NetworkPath, Metering, isMetered: Bool?)
        /// Through a folder of another machine, by a route that cannot be seen.
        case mount(isMetered: Bool?)
        /// Over a network that a person describes.
        case described(DescribedNetwork, isMetered: Bool?)
        /// It was not looked up, or could not be; with the reason.
        case unseen(String)
    }

    package var now: WallTime
    package var zone: Zone
    /// The clock can be trusted.
    package var knowsTime: Bool
    /// `nil` without a battery.
    package var power: Power?
    package var knowsPower: Bool
    package var temperature: Temperature
    /// The folder, and for a card also that of its pattern; empty for requests that belong to no folder.
    package var folders: [String]
    package var destination: String
    package var file: FileAnswers
    package var way: Way
    /// The items of `policy.networks` that have a name.
    package var networks: [NetworkRule]

    package init(
        now: WallTime, zone: Zone, knowsTime: Bool, power: Power?, knowsPower: Bool = true,
        temperature: Temperature = .unreadable, folders: [String], destination: String, file: FileAnswers, way: Way,
        networks: [NetworkRule]
    ) {
        self.now = now
        self.zone = zone
        self.knowsTime = knowsTime
        self.power = power
        self.knowsPower = knowsPower
        self.temperature = temperature
        self.folders = folders
        self.destination = destination
        self.file = file
        self.way = way
        self.networks = networks
    }
}

extension Condition {
    /// Whether it holds for a file; for a condition that asks for nothing else.
    package func truth(of file: FileFacts) -> Truth { truth(of: .file(file)) }

    /// Whether it holds for a file; for a condition that asks for nothing else.
    package func truth(of file: FileAnswers) -> Truth {
        truth(
            ConditionFacts(
                now: WallTime(milliseconds: 0), zone: .utc, knowsTime: false, power: nil, folders: [], destination: "",
                file: file, way: .unseen(""), networks: []))
    }

    /// Whether it holds now.
    package func truth(_ facts: ConditionFacts) -> Truth {
        let (day, time) = facts.zone.localTime(at: facts.now)
        return truth(facts) { $0.contains(day, time) }
    }

    /// When its truth changes by the time alone, while all other facts stay; `nil` when it does not, or the time is not
    /// known.
    package func nextChange(_ facts: ConditionFacts) -> WallTime? {
        timetable(facts)?.nextChange(after: facts.now, in: facts.zone)
    }

    /// Since when its truth is as it is, by the time alone.
    package func lastChange(_ facts: ConditionFacts) -> WallTime? {
        timetable(facts)?.lastChange(upTo: facts.now, in: facts.zone)
    }

    /// The present values of what it measures, and which of them still counts because it has hardly changed, for people.
    func measurements(_ facts: ConditionFacts) -> [String] {
        predicates.compactMap { predicate in
            switch (predicate, facts.power?.percent, facts.temperature) {
            case (.batteryBelow(let limit), let percent?, _):
                let resumes = percent < limit ? "" : ", which is enough from \(limit + Power.hysteresis) % on"
                return "it has \(percent) %" + resumes
            case (.hotterThan(let limit), _, .celsius(let degrees, _)):
                let resumes =
                    degrees > limit ? "" : ", which is cool enough from \(limit - Temperature.hysteresis) °C down"
                return "it has \(degrees) °C" + resumes
            default: return nil
            }
        }
    }

    private func timetable(_ facts: ConditionFacts) -> Timetable<Truth>? {
        let windows = windows
        guard facts.knowsTime, !windows.isEmpty else { return nil }
        return Timetable(windows) { isOpen in
            let open = Dictionary(zip(windows, isOpen), uniquingKeysWith: { first, _ in first })
            return truth(facts) { open[$0] ?? false }
        }
    }

    /// - Parameter isNegated: It is inside an odd number of `not`.
    private func truth(_ facts: ConditionFacts, isNegated: Bool = false, isOpen: (Window) -> Bool) -> Truth {
        switch self {
        // Of any file, each answer is the one with which less is restricted.
        case .fact(let predicate) where facts.file == .anyFile && predicate.isAboutFile: Truth(isNegated)
        case .fact(let predicate): predicate.truth(facts, isOpen: isOpen)
        case .all(let parts): .all(parts.map { $0.truth(facts, isNegated: isNegated, isOpen: isOpen) })
        case .any(let parts): .any(parts.map { $0.truth(facts, isNegated: isNegated, isOpen: isOpen) })
        case .not(let part): !part.truth(facts, isNegated: !isNegated, isOpen: isOpen)
        }
    }
}

extension Condition.Predicate {
    fileprivate func truth(_ facts: ConditionFacts, isOpen: (Window) -> Bool) -> Truth {
        switch self {
        case .between(let windows):
            guard facts.knowsTime else {
                return .unknown([UnknownFact("what time it is", remedy: "set the clock", isClock: true)])
            }
            return Truth(windows.contains(where: isOpen))
        case .folder(let names): return Truth(facts.folders.contains(where: names.contains))
        case .destination(let names): return Truth(names.contains(facts.destination))
        case .file(let question):
            return facts.file.answer(to: question).map { Truth($0) } ?? .unknown([question.missing(of: facts.file)])
        case .onBattery, .batteryBelow:
            guard facts.knowsPower else {
                return .unknown([
                    UnknownFact("whether the machine runs on a battery", remedy: "`--battery SHARE|none` states it")
                ])
            }
            return power(facts.power)
        case .hotterThan(let degrees): return facts.temperature.isAbove(degrees)
        case .network, .metered, .interface, .ssid, .gateway, .roaming, .lan:
            return facts.way.truth(of: self, facts.networks)
        }
    }

    private func power(_ power: Power?) -> Truth {
        switch self {
        case .onBattery(let isOn): return Truth((power?.isOnBattery ?? false) == isOn)
        case .batteryBelow(let percent):
            guard let power else { return .no }
            guard let level = power.levelWithHysteresis else {
                return .unknown([
                    UnknownFact("how much the battery has", remedy: "its driver does not report it; use `on_battery`")
                ])
            }
            return Truth(level < percent)
        default: preconditionFailure("\(self) is not about power")
        }
    }
}

extension ConditionFacts.Way {
    fileprivate func truth(of predicate: Condition.Predicate, _ networks: [NetworkRule]) -> Truth {
        func unknown(_ reason: String) -> Truth {
            .unknown([
                UnknownFact("by which network bytes would leave (\(reason))", remedy: "`sluice check` shows more")
            ])
        }
        if case .metered(let isMetered) = predicate {
            switch self {
            case .local: return Truth(!isMetered)
            case .unseen(let reason): return unknown(reason)
            case .described(let network, nil):
                return .unknown([
                    UnknownFact(
                        "whether \(network.words) is metered", remedy: "`--metered yes|no` states it")
                ])
            case .over(_, _, let counts), .mount(let counts), .described(_, let counts):
                guard let counts else {
                    return .unknown([
                        UnknownFact(
                            "whether the network is metered",
                            remedy: "name it under `networks` with `metered: true` or `false`, or set `metered_unknown`"
                        )
                    ])
                }
                return Truth(counts == isMetered)
            }
        }
        switch self {
        case .local:
            // Nothing leaves: no network is used, and no modem.
            return switch predicate {
            case .lan(let isWanted): Truth(isWanted)
            case .roaming(let isWanted): Truth(!isWanted)
            default: .no
            }
        case .unseen(let reason): return unknown(reason)
        case .mount: return unknown("a mounted folder hides it")
        case .described(let network, _): return network.truth(of: predicate, networks)
        case .over(let path, let metering, _): return metering.truth(of: predicate, over: path, networks)
        }
    }
}

extension FilePredicate {
    /// The fact that is missing, where it cannot be answered.
    fileprivate func missing(of file: FileAnswers) -> UnknownFact {
        if case .described = file {
            return switch self {
            case .longerThan: UnknownFact("how long the recording is", remedy: "`--kind` and `--duration` state it")
            case .largerThan, .smallerThan: UnknownFact("how large the file is", remedy: "`--size` states it")
            case .kind: UnknownFact("of what kind the file is", remedy: "`--kind` states it")
            }
        }
        return switch self {
        case .longerThan:
            UnknownFact(
                "how long the recording is",
                remedy: "it is read when the file is staged; with `ffprobe` installed, more formats can be read")
        case .largerThan, .smallerThan:
            UnknownFact("how large the file is", remedy: "it is known as soon as the file is staged")
        case .kind: UnknownFact("of what kind the file is", remedy: "it is known as soon as the file is staged")
        }
    }
}
