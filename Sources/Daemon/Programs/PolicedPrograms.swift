internal import Core
internal import Egress
internal import Linux

/// Gives programs with `network: policy` their part of the network: a lease of the proxy, to which the kernel holds them
/// as far as it can.
struct PolicedPrograms: Sendable {
    let proxy: EgressProxy
    let connections: ProgramConnections

    /// Decides about the connections of one run.
    func gate(for payer: ProgramPayer) -> ProgramGate { ProgramGate(payer: payer, connections: connections) }

    /// The network of one run. The lease ends, and its connections are closed, when the caller releases it.
    ///
    /// - Throws: `SystemError` when the proxy cannot listen.
    func network(
        to servers: ProgramServers, through gate: ProgramGate
    ) throws(SystemError) -> ProgramNetwork {
        let lease = try proxy.open(
            EgressPermission(
                name: gate.payer.account, ports: Set(servers.ports.compactMap { UInt16(exactly: $0) }),
                hosts: servers.hosts.isEmpty ? nil : Set(servers.hosts)),
            through: gate)
        return ProgramNetwork(
            environment: lease.environment, confinement: Confinement(port: lease.port), cover: lease.covered)
    }
}

/// The work for which a program runs, and which pays for its connections.
enum ProgramPayer: Hashable, Sendable {
    case hook(String)
    /// Makes files to upload from those of a folder.
    case export(folder: String)
    /// Gives credentials of a destination, whose rules apply.
    case credentials(destination: String)

    /// The account in the ledger. No destination has a name with a space.
    var account: String {
        switch self {
        case .hook(let name): Hook.account(name)
        case .export(let folder): "export \(folder)"
        case .credentials(let destination): destination
        }
    }

    /// The folder whose rules apply to it.
    var folder: String? { if case .export(let folder) = self { folder } else { nil } }

    /// The purpose for which policy is asked before it starts.
    var purpose: RequestPurpose { .program(folder: folder) }
}
