/// The rule for metered networks at one place of the configuration.
package enum MeteredRule: Hashable, Sendable {
    case allow
    case pause
    /// Bytes a second; 0 is a pause.
    case limit(Int64)

    var isPause: Bool { self == .pause || self == .limit(0) }
}

/// How a network counts whose cost is unknown.
package enum UnknownNetwork: String, Hashable, Sendable, CaseIterable {
    case allow, metered
}

extension PolicyRules {
    /// Whether it contains a rule about networks or their cost.
    package var dependsOnNetwork: Bool {
        if !networks.isEmpty || quotas.contains(where: { $0.network == .metered }) { return true }
        if pauses.contains(where: { $0.when.dependsOnNetwork }) { return true }
        return metered.map { $0 != .allow } ?? false
    }

    /// Whether a route may be forbidden to one file and open to another.
    package var judgesRoutesByFile: Bool {
        pauses.contains { $0.when.dependsOnNetwork && ($0.when.dependsOnFolder || !$0.when.fileQuestions.isEmpty) }
    }

    /// Whether the hardware address of a gateway decides something.
    package var namesGateways: Bool {
        networks.contains { $0.gateway != nil }
            || pauses.contains { $0.when.predicates.contains { if case .gateway = $0 { true } else { false } } }
    }

    /// Whether the name of a Wi-Fi decides something.
    package var namesWiFi: Bool {
        networks.contains { $0.ssid != nil }
            || pauses.contains { $0.when.predicates.contains { if case .ssid = $0 { true } else { false } } }
    }

    /// Bytes a second over metered networks; `nil` for no limit of its own. A pause is no limit: an upload that is
    /// exempt from the pause is not slowed down.
    package var meteredLimit: Int64? {
        if case .limit(let rate) = metered, rate > 0 { return rate }
        return nil
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
