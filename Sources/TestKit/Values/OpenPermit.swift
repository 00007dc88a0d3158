package import Transport

/// A permit without limits and without an account, for tests that are not about permits.
package struct OpenPermit: RequestPermit {
    package init() {}

    package func send(
        _ request: Request, over transport: any Transporting
    ) async throws(TransportError) -> Response { try await transport.send(request) }

    package func charging(upload id: String) -> any RequestPermit { self }
    package func allowance(for count: Int64) -> Int64 { count }
    package func reserve(for count: Int64) -> Shortage? { nil }
    package func returnReservation(for count: Int64, sent: Int64) {}
    package var rate: Int64? { nil }
}

extension RequestContext {
    /// With that permit.
    package static let open = RequestContext(permit: OpenPermit(), headers: [:])
}
