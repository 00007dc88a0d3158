import Core
import Transport

@testable import Notices

/// A permit without limits and without an account.
struct OpenPermit: RequestPermit {
    func send(_ request: Request, over transport: any Transporting) async throws(TransportError) -> Response {
        try await transport.send(request)
    }

    func charging(upload id: String) -> any RequestPermit { self }
    func allowance(for count: Int64) -> Int64 { count }
    func reserve(for count: Int64) -> Shortage? { nil }
    func returnReservation(for count: Int64, sent: Int64) {}
    var rate: Int64? { nil }
}

extension HookDelivery {
    /// With that permit.
    init(_ target: Hook.Target) {
        switch target {
        case .command(let command): self = .command(command.words)
        case .web(let web): self = .web(web, OpenPermit())
        }
    }
}
