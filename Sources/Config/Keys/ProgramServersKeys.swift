internal import Core

// `network`, `ports` and `hosts` of a program that Sluice starts, beside its `command`.

extension ProgramServers {
    /// The keys `ports` and `hosts`, which are read together with `network`.
    ///
    /// - Parameter servers: `nil` where policy does not apply to the program.
    @_semantics("optimize.sil.specialize.generic.never")
    static func keys<Owner>(_ servers: @escaping @Sendable (Owner) -> ProgramServers?) -> [Key<Owner>] {
        [
            Key("ports", of: { servers($0)?.ports ?? webPorts }) { ports, _ in .value(ports.inFile) }
                .takes(.list(.whole(1...65_535))).printed { servers($0) != nil },
            Key("hosts", of: { servers($0)?.hosts ?? [] }) { hosts, _ in hosts.isEmpty ? nil : .value(hosts.inFile) }
                .takes(.list(.host)),
        ]
    }

    /// Reports keys of a program in a hook that is an address.
    static func refuse(besideURL fields: MappingReader) {
        for key in ["ports", "hosts"] where fields.has(key) {
            fields.error("belongs to `command`; a `url` names its own server", key)
        }
    }

    /// Reads all three.
    ///
    /// - Returns: `nil` where policy does not apply to the program, which is the default.
    init?(reading fields: MappingReader) {
        let network = fields.read("network", as: Reader<HookNetwork>.choice)?.value ?? .any
        self.init()
        if let given = fields.list("ports", as: .whole(1...65_535)) { ports = given.map(\.value) }
        if let given = fields.list("hosts", as: .host) { hosts = given.map(\.value) }
        let remedies = [
            ("ports", "names no port, so the program could connect to nothing; remove it for 80 and 443"),
            ("hosts", "names no host, so the program could connect to nothing; remove it for all"),
        ]
        for (key, problem) in remedies where fields.has(key) {
            if network == .any {
                fields.error("has no effect without `network: policy`; add that, or remove it", key)
            } else if case .list(let items)? = fields.node(key)?.content, items.isEmpty {
                fields.error(problem, key)
            }
        }
        if network == .any { return nil }
    }
}
