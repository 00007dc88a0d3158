import Synchronization
import Testing
import Transport

@testable import Daemon

@Suite("Interface of a request")
struct TransferPermitTests {
    private final class Road: Transporting {
        let interfaces = Mutex<[String?]>([])

        func send(_ request: Request) async throws(TransportError) -> Response {
            interfaces.withLock { $0.append(request.interface) }
            return Response(status: 200)
        }
    }

    @Test("a request uses the permitted interface, except within this machine")
    func interface() async throws {
        let road = Road()
        var permit = TransferPermit.byHand
        permit.interface = "wwan7"
        try await TransferPermit.$current.withValue(permit) {
            for host in ["s3.example", "169.254.169.254", "127.0.0.1.example", "127.0.0.1:8100", "[::1]", "localhost"] {
                _ = try await PermittedTransport(transport: road).send(Request("GET", "http://\(host)/x"))
            }
        }
        #expect(road.interfaces.withLock { $0 } == ["wwan7", "wwan7", "wwan7", nil, nil, nil])
    }
}
