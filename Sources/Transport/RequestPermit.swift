/// The permission to send requests that policy has given to one transfer, or to one query.
///
/// Only the code that decides about policy makes one. It is passed from there to the transport as a parameter, so that a
/// request without a permit does not compile.
package protocol RequestPermit: Sendable {
    /// Sends a request under the conditions of the permit: its interface, its rate limits and its account.
    ///
    /// - Throws: As ``Transporting/send(_:)``.
    func send(_ request: Request, over transport: any Transporting) async throws(TransportError) -> Response

    /// The same permit for the requests of one of its uploads, whose account they are charged to.
    func charging(upload id: String) -> any RequestPermit

    /// How many of the `count` remaining bytes of a file one request may carry: all of them, unless a quota ends first.
    func allowance(for count: Int64) -> Int64

    /// Reserves the quota for a request with a body of `count` bytes that cannot be divided. Must be followed by
    /// ``returnReservation(for:sent:)``.
    ///
    /// - Returns: The reason why it may not begin now; `nil` when it may.
    func reserve(for count: Int64) async -> Shortage?

    /// Ends a reservation after `sent` bytes of the body have left: the rest is free again.
    func returnReservation(for count: Int64, sent: Int64)

    /// The present limit of its requests in bytes a second; `nil` without a limit.
    var rate: Int64? { get }
}

/// The values that all requests of one upload, or of one query, are sent with.
package struct RequestContext: Sendable {
    package let permit: any RequestPermit
    /// More request headers that a person gave for the upload. They are added to requests to the destination's own
    /// origin, and to no others.
    package let headers: [String: String]

    package init(permit: any RequestPermit, headers: [String: String]) {
        self.permit = permit
        self.headers = headers
    }

    /// The same for the requests of one upload of a bundle.
    package func charging(upload id: String) -> RequestContext {
        RequestContext(permit: permit.charging(upload: id), headers: headers)
    }
}

/// A transport that sends a request only with a permit.
package struct PermittedTransport: Sendable {
    private let transport: any Transporting
    private let connections: (any ConnectionSource)?

    package init(_ transport: any Transporting) { self.init(transport, connections: nil) }

    private init(_ transport: any Transporting, connections: (any ConnectionSource)?) {
        self.transport = transport
        self.connections = connections
    }

    /// The same for the requests of one destination, which connect as `source` says.
    package func connecting(by source: any ConnectionSource) -> PermittedTransport {
        PermittedTransport(transport, connections: source)
    }

    /// - Throws: ``TransportError`` where no answer came, or where the permit allows no request.
    package func send(
        _ request: Request, with permit: any RequestPermit
    ) async throws(TransportError) -> Response {
        guard let connections else { return try await exchange(request, permit) }
        var request = request
        let settings = try await connections.settings(for: request)
        request.connection = request.showsIdentity ? settings : settings.anonymous
        do throws(TransportError) {
            let response = try await exchange(request, permit)
            if response.possibleProxy != nil { await connections.proxyRefused() }
            return response
        } catch {
            if error.kind == .proxy { await connections.proxyRefused() }
            throw error
        }
    }

    private func exchange(
        _ request: Request, _ permit: any RequestPermit
    ) async throws(TransportError) -> Response {
        let response = try await permit.send(request, over: transport)
        // RFC 9110, section 10.1.1: the server, or a proxy before it, accepts no `Expect`. libcurl repeats the request
        // itself unless the connection was closed.
        guard response.status == 417, request.expectsContinue, response.bytesSent == 0 else { return response }
        var repetition = request
        repetition.allowsExpectContinue = false
        return try await permit.send(repetition, over: transport)
    }
}
