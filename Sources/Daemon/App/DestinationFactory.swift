internal import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Transport

/// Makes destinations from their settings.
struct DestinationFactory: Sendable {
    let kinds: [DestinationDefinition]
    let transport: Transport
    let secrets: SecretReader
    let clocks: any Clocks
    let log: Log
    /// `nil` where no daemon runs whose requests could be followed.
    var traces: RequestTraces?

    /// - Throws: The destination's error about its settings.
    func make(_ destination: DestinationSettings) throws -> any Destination {
        guard let kind = kinds.first(where: { $0.type.name == destination.type }) else {
            throw UnusableSettingError(key: "type", problem: "is `\(destination.type)`, an unknown type")
        }
        let tools = DestinationTools(
            transport: PermittedTransport(transport(for: destination.name)), secrets: secrets.of(destination.name),
            clocks: clocks,
            name: destination.name, log: { log.notice($0, ["destination": destination.name]) })
        do { return try kind.make(destination.values, tools) } catch let error as UnusableSettingError {
            throw error.located(
                at: destination.places.byKey[error.key] ?? destination.place, in: destination.name)
        }
    }

    private func transport(for name: String) -> any Transporting {
        guard let traces else { return transport }
        return TracedTransport(transport: transport, destination: name, traces: traces, clocks: clocks)
    }
}
