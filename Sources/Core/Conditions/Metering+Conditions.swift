extension Metering {
    /// Whether bytes on this route would leave as a condition about networks describes.
    ///
    /// A route may run over several interfaces, as a tunnel does: it is enough that one of them is meant.
    ///
    /// - Parameter networks: The named ones.
    func truth(of predicate: Condition.Predicate, over path: NetworkPath, _ networks: [NetworkRule]) -> Truth {
        let steps = walk(path) { _ in false }
        if steps.isEmpty {
            return .unknown([UnknownFact("what interface number \(path.link) is", remedy: "it is not there any more")])
        }
        func somewhere(_ truth: (Step) -> Truth) -> Truth { .any(steps.map { certain($0, truth($0)) }) }
        switch predicate {
        case .interface(let globs):
            return somewhere { step in Truth(globs.contains { Glob($0).matches(FilePath(step.link.name)) }) }
        case .ssid(let names):
            return somewhere { step in .any(names.map { step.link.isInWiFi($0) }) }
        case .gateway(let addresses):
            return somewhere { step in .any(addresses.map { step.leads(to: $0) }) }
        case .roaming(let isWanted):
            let isRoaming = somewhere { roams($0.link) }
            return isWanted ? isRoaming : !isRoaming
        case .network(let names):
            let named = networks.filter { $0.name.map(names.contains) ?? false }
            return .any(named.map { rule in somewhere { self.truth(of: rule, $0) } })
        case .metered(let isWanted):
            let judgement = judgement(of: path)
            switch judgement.metered {
            case .metered where !judgement.isAssumed: return Truth(isWanted)
            case .unmetered where !judgement.isAssumed: return Truth(!isWanted)
            case .metered, .unmetered, .unknown:
                return .unknown([UnknownFact("whether the network is metered", remedy: "name it under `networks`")])
            }
        case .lan(let isWanted):
            if links[path.link]?.medium == .loopback { return Truth(isWanted) }
            // Rules by mark, and IPsec, may lead to a router.
            guard let isOnLink = path.isOnLink, path.others.isEmpty, !path.isEncapsulated else {
                return .unknown([
                    UnknownFact(
                        "whether the destination is in the local network",
                        remedy: "its address is not known, or its addresses differ in that; `sluice check` shows more")
                ])
            }
            return Truth(isOnLink == isWanted)
        case .between, .onBattery, .batteryBelow, .hotterThan, .folder, .destination, .file:
            preconditionFailure("\(predicate) is not about a network")
        }
    }

    /// Whether an item of `networks` means this interface: all of its conditions hold.
    private func truth(of rule: NetworkRule, _ step: Step) -> Truth {
        var parts: [Truth] = []
        if let interface = rule.interface { parts.append(Truth(Glob(interface).matches(FilePath(step.link.name)))) }
        if let ssid = rule.ssid { parts.append(step.link.isInWiFi(ssid)) }
        if let gateway = rule.gateway { parts.append(step.leads(to: gateway)) }
        if let subnet = rule.subnet {
            parts.append(Truth(step.link.addresses.contains { subnet.contains($0.address) }))
        }
        if let isRoaming = rule.isRoaming { parts.append(isRoaming ? roams(step.link) : !roams(step.link)) }
        return .all(parts)
    }

    /// Only a modem roams.
    private func roams(_ link: NetworkLink) -> Truth {
        guard isModem(link) else { return .no }
        guard let isRoaming = modems[link.name]?.isRoaming else {
            return .unknown([UnknownFact("whether \(link.name) roams", remedy: "ModemManager reports it")])
        }
        return Truth(isRoaming)
    }

    /// It is not known which interface carries a tunnel.
    private func certain(_ step: Step, _ truth: Truth) -> Truth {
        guard step.isAssumed, truth != .no else { return truth }
        return .unknown([
            UnknownFact(
                "whether \(step.carried) leaves through \(step.link.name)", remedy: "`sluice check` shows the routes")
        ])
    }
}

extension NetworkLink {
    /// A cable is in no Wi-Fi.
    fileprivate func isInWiFi(_ name: String) -> Truth {
        if let ssid { return Truth(ssid == Array(name.utf8)) }
        if !isWireless { return .no }
        return .unknown([
            UnknownFact(
                "which Wi-Fi \(self.name) is in",
                remedy:
                    "NetworkManager or the kernel reports it; the `gateway` or `interface` of the network can be named in its place"
            )
        ])
    }
}

extension Metering.Step {
    /// Only links with hardware addresses have such gateways.
    fileprivate func leads(to address: HardwareAddress) -> Truth {
        if let gateway { return Truth(gateway == address) }
        if link.medium != .ethernet { return .no }
        return .unknown([
            UnknownFact(
                "which gateway \(link.name) leads to", remedy: "it is known once the machine has talked to its gateway")
        ])
    }
}
