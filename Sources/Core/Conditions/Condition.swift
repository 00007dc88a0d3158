/// When a rule applies: the value of `when`.
package indirect enum Condition: Hashable, Sendable {
    case fact(Predicate)
    /// A mapping.
    case all([Condition])
    /// A list.
    case any([Condition])
    case not(Condition)

    /// A question about one fact. With several values it asks for any of them.
    package enum Predicate: Hashable, Sendable {
        case between([Window])
        /// Names under `policy.networks`.
        case network([String])
        case metered(Bool)
        /// Globs.
        case interface([String])
        case ssid([String])
        case gateway([HardwareAddress])
        case roaming(Bool)
        /// The destination is in a network of the interface, without a router between.
        case lan(Bool)
        case onBattery(Bool)
        /// Per cent.
        case batteryBelow(Int)
        /// Degrees Celsius.
        case hotterThan(Int)
        case folder([String])
        case destination([String])
        case file(FilePredicate)
    }

    /// The most levels of `not` and lists in each other.
    package static let maxDepth = 3

    /// Every predicate in it, from left to right.
    package var predicates: [Predicate] {
        switch self {
        case .fact(let predicate): [predicate]
        case .all(let parts), .any(let parts): parts.flatMap(\.predicates)
        case .not(let part): part.predicates
        }
    }

    /// The windows of every `between`.
    package var windows: [Window] {
        predicates.flatMap { predicate -> [Window] in if case .between(let windows) = predicate { windows } else { [] }
        }
    }

    package var dependsOnNetwork: Bool { predicates.contains(where: \.isAboutNetwork) }
    package var dependsOnPower: Bool { predicates.contains(where: \.isAboutPower) }
    package var dependsOnTemperature: Bool {
        predicates.contains { if case .hotterThan = $0 { true } else { false } }
    }
    package var dependsOnTime: Bool { !windows.isEmpty }
    /// Whether nothing but the time decides.
    package var dependsOnTimeOnly: Bool {
        predicates.allSatisfy { if case .between = $0 { true } else { false } }
    }

    /// The keys of the facts that may change while an upload waits, besides the time: each once, as they are written.
    package var changingFacts: [String] {
        var keys: [String] = []
        for key in predicates.compactMap(\.keyOfChangingFact) where !keys.contains(key) { keys.append(key) }
        return keys
    }

    /// Whether it can be true of one folder and false of another.
    package var dependsOnFolder: Bool {
        predicates.contains { if case .folder = $0 { true } else { false } }
    }

    /// Whether it asks for something that only an upload has.
    package var asksForUpload: Bool {
        predicates.contains { predicate in
            switch predicate {
            case .lan, .folder, .destination, .file: true
            default: false
            }
        }
    }

    /// Its questions about files.
    package var fileQuestions: [FilePredicate] {
        predicates.compactMap { if case .file(let question) = $0 { question } else { nil } }
    }
}

extension Condition.Predicate {
    package var isAboutFile: Bool { if case .file = self { true } else { false } }

    /// Whether it is judged for each route by which bytes could leave.
    package var isAboutNetwork: Bool {
        switch self {
        case .network, .metered, .interface, .ssid, .gateway, .roaming, .lan: true
        case .between, .onBattery, .batteryBelow, .hotterThan, .folder, .destination, .file: false
        }
    }

    /// The key of the configuration for its fact; `nil` for the time, and for what stays as it is for each upload.
    fileprivate var keyOfChangingFact: String? {
        switch self {
        case .network: "network"
        case .metered: "metered"
        case .interface: "interface"
        case .ssid: "ssid"
        case .gateway: "gateway"
        case .roaming: "roaming"
        case .lan: "lan"
        case .onBattery: "on_battery"
        case .batteryBelow: "battery_below"
        case .hotterThan: "hotter_than"
        case .between, .folder, .destination, .file: nil
        }
    }

    package var isAboutPower: Bool {
        switch self {
        case .onBattery, .batteryBelow: true
        default: false
        }
    }
}

// MARK: Words

extension Condition {
    /// A clause for people: `the network is lte, and not (it is between 22:00-06:00)`.
    package var words: String {
        switch self {
        case .fact(let predicate): predicate.words
        case .all(let parts): parts.map { $0.inner(of: self) }.joined(separator: ", and ")
        case .any(let parts): parts.map { $0.inner(of: self) }.joined(separator: ", or ")
        case .not(let part): "not (\(part.words))"
        }
    }

    /// In brackets where the clause around it joins in another way.
    private func inner(of outer: Condition) -> String {
        switch (self, outer) {
        case (.all(let parts), .any) where parts.count > 1: "(\(words))"
        case (.any(let parts), .all) where parts.count > 1: "(\(words))"
        default: words
        }
    }
}

extension Condition.Predicate {
    var words: String {
        switch self {
        case .between(let windows): "it is between \(listed(windows.map(\.fullWords), "or"))"
        case .network(let names): "the network is \(Self.named(names))"
        case .metered(let isMetered): isMetered ? "the network is metered" : "the network is not metered"
        case .interface(let names): "the interface is \(Self.named(names))"
        case .ssid(let names): "the Wi-Fi is \(Self.named(names))"
        case .gateway(let addresses): "the gateway is \(listed(addresses.map { "\($0)" }, "or"))"
        case .roaming(let roams): roams ? "the modem roams" : "no modem roams"
        case .lan(let isIn):
            isIn ? "the destination is in the local network" : "the destination is not in the local network"
        case .onBattery(let isOn): isOn ? "the machine runs on its battery" : "the machine does not run on its battery"
        case .batteryBelow(let percent): "the battery has less than \(percent) %"
        case .hotterThan(let degrees): "the machine is hotter than \(degrees) °C"
        case .folder(let names): "the folder is \(Self.named(names))"
        case .destination(let names): "the destination is \(Self.named(names))"
        case .file(.largerThan(let bytes)): "the file is larger than \(writtenBytes(bytes))"
        case .file(.smallerThan(let bytes)): "the file is smaller than \(writtenBytes(bytes))"
        case .file(.kind(let kinds)): "the file is of the kind \(listed(kinds.map(\.rawValue).sorted(), "or"))"
        case .file(.longerThan(let length)): "the recording is longer than \(writtenTime(.milliseconds(length)))"
        }
    }

    private static func named(_ names: [String]) -> String { listed(names.map { printable($0) }, "or") }
}
