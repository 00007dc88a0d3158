internal import Core

/// Reads `metered` and `networks` at any place.
extension SettingsReading {
    /// The rule for `pause`; `nil` for `allow`.
    func meteredRule(_ fields: MappingReader) -> PauseRule? {
        guard let node = fields.node("metered") else { return nil }
        let rate: String?
        switch node.content {
        case .scalar(let text, _): rate = (try? Reader<Int64?>.rate.read(text)) == nil ? nil : text
        case .mapping(let entries): rate = entries.first { $0.key == "limit" }?.value.scalar
        case .list: rate = nil
        }
        guard let rate else {
            let word = fields.read("metered", as: Reader<MeteredRule>.choice)?.value
            return word == .pause ? .metered(place: place(at: node.start)) : nil
        }
        ReplacedKeys(findings).reportRate(rate, at: node.start, path: fields.path(of: "metered"))
        return nil
    }

    func networks(_ fields: MappingReader) -> [NetworkRule] {
        let expected = "a list of networks, like `[{interface: \"wwan*\", metered: true}]`"
        guard let items = fields.items("networks", expected: expected) else { return [] }
        let read = items.enumerated().compactMap { index, item -> ShadowedRuleCheck.Item? in
            let key = "\(fields.path(of: "networks"))[\(index)]"
            let rule = network(MappingReader(item, .network, path: key, start: item.start, findings: findings))
            return rule.map { ShadowedRuleCheck.Item(rule: $0, place: item.start, key: key) }
        }
        ShadowedRuleCheck(findings: findings).check(read)
        return read.map(\.rule)
    }

    private func network(_ fields: MappingReader) -> NetworkRule? {
        var rule = NetworkRule()
        let readable = NetworkRule.keys.read(fields, into: &rule, self)
        if !fields.has("metered"), !fields.has("allowed"), !fields.has("name") {
            fields.error(
                "sets nothing; add `metered: true` or `false`, or `allowed: true` or `false`, or a `name` for "
                    + "conditions", "metered")
        }
        if rule.name != nil, !NetworkRule.conditionKeys.contains(where: { fields.has($0.name) }) {
            fields.error("names every network; add what tells this one from others, like `interface`", "name")
        }
        // Without an unreadable condition the rule would apply to every network.
        let isMissing = NetworkRule.conditionKeys.contains { fields.has($0.name) && !readable.contains($0.name) }
        return isMissing ? nil : rule
    }
}

extension NetworkRule: SettingsValue {
    static let conditionKeys: [Key<Self>] = [
        Key("interface", \.interface, .interface), Key("ssid", \.ssid, .ssid), Key("gateway", \.gateway, .hardware),
        Key("subnet", \.subnet, .subnet), Key("roaming", \.isRoaming, .flag),
    ]
    static let keys: [Key<Self>] =
        [Key("name", \.name, .name)] + conditionKeys + [
            Key("metered", \.isMetered, .flag), Key("allowed", \.isAllowed, .flag),
        ]

    var inFile: WrittenValue { Self.keys.inFile(of: self) }
}

extension Reader where Value == String {
    /// A pattern for names of interfaces, of 15 bytes at most (`IFNAMSIZ`, linux/if.h).
    static var interface: Reader {
        let text = Reader.text("an interface name, or a pattern like `wwan*`", longest: 64)
        return Reader(expected: text.expected, isText: true) { written throws(ValueError) in
            let pattern = try text.read(written)
            let isPattern = pattern.contains { "*?[{\\".contains($0) }
            if !isPattern, pattern.utf8.count > 15 {
                throw ValueError("is longer than the 15 bytes of an interface name")
            }
            if pattern.contains("/") { throw ValueError("has a `/` in it, which no interface name has") }
            return try Reader.glob.read(written)
        }
    }

    /// At most 32 bytes (IEEE 802.11, 9.4.2.2).
    static var ssid: Reader { text("the name of a Wi-Fi, exactly", longest: 32) }
}

extension Reader where Value == HardwareAddress {
    static var hardware: Reader {
        Reader(expected: "a hardware address, like `\"0c:5b:8f:27:9a:64\"`", kind: .hardwareAddress) {
            text throws(ValueError) in
            guard let address = HardwareAddress(text) else {
                if IPAddress(text) != nil {
                    throw ValueError(
                        "is an IP address; the gateway is identified by its hardware address, which `ip neigh` shows")
                }
                throw .plain
            }
            return address
        }
    }
}

extension Reader where Value == IPSubnet {
    fileprivate static var subnet: Reader {
        Reader(expected: "a network, like `192.168.1.0/24` or `fd00::/8`", kind: .subnet) { text throws(ValueError) in
            guard let subnet = IPSubnet(text) else { throw .plain }
            if !text.contains("/") {
                throw ValueError(
                    "takes a network with its length, like `192.168.1.0/24`, not the address \(quoted(text)); for "
                        + "that address alone write `\(subnet)`")
            }
            if subnet.network != subnet {
                throw ValueError("\(quoted(text)) has host bits set; the network is `\(subnet.network)`")
            }
            return subnet
        }
    }
}
