/// The values of `metered` at one place of the configuration; `pause` is a rule (``PauseRule/metered(place:)``).
package enum MeteredRule: String, Hashable, Sendable, CaseIterable {
    case allow, pause
}

/// How a network counts whose cost is unknown.
package enum UnknownNetwork: String, Hashable, Sendable, CaseIterable {
    case allow, metered
}

extension PolicyRules {
    /// Whether it contains a rule about networks or their cost.
    package var dependsOnNetwork: Bool {
        !networks.isEmpty || conditions.contains(where: \.dependsOnNetwork)
    }

    /// Whether a route may be forbidden to one file and open to another.
    package var judgesRoutesByFile: Bool {
        stops.contains { $0.when.dependsOnNetwork && ($0.when.dependsOnFolder || !$0.when.fileQuestions.isEmpty) }
    }

    /// Whether the hardware address of a gateway decides something.
    package var namesGateways: Bool {
        networks.contains { $0.gateway != nil }
            || conditions.contains { $0.predicates.contains { if case .gateway = $0 { true } else { false } } }
    }

    /// Whether the name of a Wi-Fi decides something.
    package var namesWiFi: Bool {
        networks.contains { $0.ssid != nil }
            || conditions.contains { $0.predicates.contains { if case .ssid = $0 { true } else { false } } }
    }
}

extension PolicyRules {
    /// The rules of a destination that have no effect there, and why, for people.
    package func withoutEffect(at site: DestinationSite, _ reachability: Reachability) -> [String] {
        guard site.isFolder else { return [] }
        var words: [String] = []
        if !quotas.isEmpty, reachability == .local {
            words.append("its quotas count nothing: a copy to a disk of this machine sends nothing")
        }
        if bandwidth.contains(where: { $0.limit.map { $0 > 0 } ?? false }) {
            words.append("its bandwidth slows nothing down: a copy to a folder has no limit but 0")
        }
        return words
    }
}
