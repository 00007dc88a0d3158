internal import Core

/// The options that describe a network, in place of the one that this machine uses.
struct NetworkOptions {
    static let on = Option("on", "NAME", "a network of `policy.networks`, with the facts that its item states")
    private static let others: [Option] = [
        Option("interface", "NAME", "the interface of the network: eth0, wwan0"),
        Option("ssid", "NAME", "the name of the Wi-Fi"),
        Option("gateway", "ADDRESS", "the hardware address of the router"),
        Option("metered", "yes|no", takes: .words(["yes", "no"]), "whether the network is metered"),
        Option("roaming", "yes|no", takes: .words(["yes", "no"]), "whether the modem roams"),
        Option("lan", "yes|no", takes: .words(["yes", "no"]), "whether the destination is in the local network"),
    ]
    static let all = [on] + others

    /// The name of `--on`.
    let name: String?
    /// The facts of the other options; `nil` where none is given.
    let facts: NetworkRule?
    /// Whether destinations are in the local network.
    let isLAN: Bool?

    init(_ arguments: Arguments, of verb: Verb) throws {
        name = arguments.text("on")
        var facts = NetworkRule()
        facts.interface = arguments.text("interface")
        facts.ssid = arguments.text("ssid")
        if let written = arguments.text("gateway") {
            guard let address = HardwareAddress(written) else {
                throw Arguments.usage(
                    "--gateway takes a hardware address like 0c:5b:8f:27:9a:64, not `\(printable(written))`", verb)
            }
            facts.gateway = address
        }
        facts.isMetered = try Self.answer("metered", arguments, verb)
        facts.isRoaming = try Self.answer("roaming", arguments, verb)
        self.facts = facts == NetworkRule() ? nil : facts
        isLAN = try Self.answer("lan", arguments, verb)
    }

    /// The described network; `nil` where no option describes one.
    ///
    /// - Parameter networks: The items of `policy.networks`.
    func network(among networks: [NetworkRule]) throws(CommandError) -> DescribedNetwork? {
        if name == nil, facts == nil, isLAN == nil { return nil }
        let network = DescribedNetwork(named: name, in: networks, stating: facts ?? NetworkRule(), isLAN: isLAN)
        if let network { return network }
        let (problem, remedy) = DescribedNetwork.missing(name ?? "", in: networks)
        throw CommandError(.notFound, problem, remedy: remedy)
    }

    private static func answer(_ option: String, _ arguments: Arguments, _ verb: Verb) throws -> Bool? {
        guard let written = arguments.text(option) else { return nil }
        switch written {
        case "yes": return true
        case "no": return false
        default: throw Arguments.usage("--\(option) takes yes or no, not `\(printable(written))`", verb)
        }
    }
}
