internal import Core
internal import Credentials
internal import Linux

/// Runs commands of credentials with `network: policy`, under the rules of their destination.
final class CredentialCommands: PolicedCommands {
    private let policed: PolicedPrograms

    init(policed: PolicedPrograms) { self.policed = policed }

    func output(
        of program: Program, for destination: String, to servers: ProgramServers, atMost most: Int,
        within limit: Duration
    ) async throws -> [UInt8] {
        let payer = ProgramPayer.credentials(destination: destination)
        if let hold = await policed.connections.scheduler.snapshot.hold(on: payer.purpose, at: payer.account) {
            throw CommandHeldError(hold.text)
        }
        let gate = policed.gate(for: payer)
        let result = await run(program, servers, gate, most, limit)
        let (_, hold) = await gate.finished()
        if case .failure = result, let hold { throw CommandHeldError(hold.text) }
        return try result.get()
    }

    /// The lease of the proxy, which `network` keeps, ends with it.
    private func run(
        _ program: Program, _ servers: ProgramServers, _ gate: ProgramGate, _ most: Int, _ limit: Duration
    ) async -> Result<[UInt8], any Error> {
        do {
            let network = try policed.network(to: servers, through: gate)
            defer { withExtendedLifetime(network) {} }
            var program = program
            program.environment += network.environment
            program.confinement = network.confinement
            return .success(try await program.awaitOutput(atMost: most, within: limit))
        } catch { return .failure(error) }
    }
}
