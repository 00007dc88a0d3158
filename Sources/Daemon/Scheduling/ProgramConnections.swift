internal import Config
internal import Core
internal import Egress
internal import Linux
internal import Names

/// Connects programs to servers, over routes that policy allows.
struct ProgramConnections: Sendable {
    /// How a connection has ended.
    struct End: Sendable {
        var cost = Spending.none
        /// The hold that refused or stopped it.
        var hold: Hold?
    }

    /// The addresses of a server that belong to other machines, and the routes to them.
    struct Server: Sendable {
        let addresses: [IPAddress]
        let port: UInt16
        let reachability: Reachability
        /// The state of policy when the routes were found.
        let generation: PolicyGeneration

        /// Its name as a place that is inspected while a connection of this payer leads to it.
        func place(of payer: ProgramPayer) -> String {
            "\(payer.account) to \(addresses.map(\.description).joined(separator: ",")) port \(port)"
        }

        var site: DestinationSite { .addresses(addresses, port: port) }

        func purpose(for payer: ProgramPayer) -> RequestPurpose {
            .connection(place: place(of: payer), folder: payer.folder)
        }
    }

    /// Why there is no connection.
    private enum Obstacle: Error {
        case refused(EgressRefusal)
        case held(Hold)
    }

    let scheduler: Scheduler
    let names: AddressCache

    /// How often routes are looked for while policy or the networks change.
    private static let maxFinds = 20

    /// Decides about a connection and carries it. Returns when it has ended and its bytes are recorded.
    func carry(_ connection: EgressConnection, for payer: ProgramPayer) async -> End {
        do throws(Obstacle) {
            // Nothing is asked about a name while no byte may be sent anywhere.
            if let hold = await scheduler.snapshot.hold(on: payer.purpose, at: payer.account) { throw .held(hold) }
            let addresses = try await addresses(of: connection.target, for: payer)
            // The program may have gone meanwhile.
            if Task.isCancelled { return End() }
            return await end(of: try await start(connection, to: addresses, for: payer), for: payer)
        } catch {
            switch error {
            case .refused(let refusal): connection.refuse(refusal)
            case .held(let hold):
                connection.refuse(.held(hold.text))
                return End(hold: hold)
            }
            return End()
        }
    }

    private func start(
        _ connection: EgressConnection, to addresses: [IPAddress], for payer: ProgramPayer
    ) async throws(Obstacle) -> RunningRequest<EgressEnd> {
        var tries = 0
        while true {
            let generation = await scheduler.facts.generation
            let (others, reachability, isUnfinished) = await scheduler.networks.find(
                addresses, port: connection.target.port,
                gatewaysMatter: scheduler.context.settings.allRules.contains(where: \.namesGateways))
            if others.isEmpty {
                throw .refused(
                    .forbidden("\(connection.target) is an address of this machine, or valid on one link alone"))
            }
            tries += 1
            if isUnfinished, tries < Self.maxFinds, !Task.isCancelled {
                try? await Alarms.shared.sleep(for: .milliseconds(100))
                continue
            }
            let server = Server(
                addresses: others, port: connection.target.port, reachability: reachability, generation: generation)
            let isLast = tries >= Self.maxFinds || Task.isCancelled
            let started = await scheduler.connect(to: server, for: payer, evenIfChanged: isLast) { [names] permit in
                var owed = Spending.none
                if case .name(let name) = connection.target.host { owed = names.removeOwed(for: name) }
                return await permit.carry(connection, to: others, owing: owed)
            }
            switch started {
            case nil: continue
            case .success(let request): return request
            case .failure(let held): throw .held(held.hold)
            }
        }
    }

    private func end(of request: RunningRequest<EgressEnd>, for payer: ProgramPayer) async -> End {
        let ended = await scheduler.requests.finish(request)
        var hold = ended.hold
        // A quota that was used up has stopped it.
        if hold == nil, ended.answer == .stopped {
            hold = await scheduler.snapshot.hold(on: payer.purpose, at: payer.account)
        }
        return End(cost: ended.cost, hold: hold)
    }

    /// The addresses of a server, asked for over permitted networks.
    private func addresses(of target: EgressTarget, for payer: ProgramPayer) async throws(Obstacle) -> [IPAddress] {
        let name: String
        switch target.host {
        case .address(let address): return [address]
        case .name(let known): name = known
        }
        if name == "localhost" || name.hasSuffix(".localhost") {
            throw .refused(.forbidden("\(target) is an address of this machine"))
        }
        do {
            guard let servers = scheduler.sendingLimits.bandwidth.nameServers(for: payer.account)() else {
                return try await SystemResolver.addresses(of: name)
            }
            return try await names.addresses(of: name, servers)
        } catch DNSLookup.LookupError.notAllowed(let text) {
            throw .refused(.held(text))
        } catch { throw .refused(.unknownName("\(error)")) }
    }
}
