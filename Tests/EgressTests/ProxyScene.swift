import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Egress

/// A proxy whose gate connects every server to one address, and counts the bytes.
final class ProxyScene: Sendable {
    let proxy: EgressProxy
    let gate: Gate

    init(address: String = "127.0.0.1", throttles: [Throttle] = []) throws {
        proxy = EgressProxy(clocks: SystemClocks(), log: .silent)
        gate = Gate(address: try #require(IPAddress(address)), throttles: throttles)
    }

    func lease(_ ports: [Int], hosts: Set<String>? = nil) throws -> EgressLease {
        let ports = Set(ports.compactMap { UInt16(exactly: $0) })
        return try proxy.open(EgressPermission(name: "test", ports: ports, hosts: hosts), through: gate)
    }

    /// Runs curl with the variables of a lease, or with others.
    ///
    /// - Returns: Its exit status, and what it printed.
    func curl(_ words: [String], _ environment: [String]) async throws -> (status: Child.Ending, text: String) {
        try await run("/usr/bin/curl", ["-sS", "-m", "20"] + words, environment)
    }

    func run(
        _ program: FilePath, _ words: [String], _ environment: [String]
    ) async throws -> (status: Child.Ending, text: String) {
        let folder = TemporaryFolder()
        let variables = environment.map { variable in
            let cut = variable.firstIndex(of: "=") ?? variable.endIndex
            return (String(variable[..<cut]), String(variable[cut...].dropFirst()))
        }
        let child = try Child(
            program, words, environment: Dictionary(variables, uniquingKeysWith: { $1 }),
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(40))
        return (ending, try child.standardOutput() + child.standardError())
    }

    final class Gate: EgressGate {
        struct Seen: Sendable {
            var targets: [String] = []
            var ends: [EgressEnd] = []
            var spent = Spending.none
            var running: [EgressConnection] = []
        }

        let seen = Mutex(Seen())
        private let address: IPAddress
        private let throttles: [Throttle]

        init(address: IPAddress, throttles: [Throttle]) {
            self.address = address
            self.throttles = throttles
        }

        var ends: [EgressEnd] { seen.withLock { $0.ends } }
        var spent: Spending { seen.withLock { $0.spent } }
        var running: [EgressConnection] { seen.withLock { $0.running } }

        func carry(_ connection: EgressConnection) async {
            seen.withLock { seen in
                seen.targets.append(connection.target.description)
                seen.running.append(connection)
            }
            let end = await connection.relay(
                EgressRoute(
                    addresses: [address], interface: nil, throttles: throttles,
                    onWire: { [self] bytes in seen.withLock { $0.spent.bytes += bytes } },
                    onArrived: { [self] bytes in seen.withLock { $0.spent.received += bytes } }))
            seen.withLock { seen in
                seen.ends.append(end)
                seen.running.removeAll { $0 === connection }
            }
        }
    }
}
