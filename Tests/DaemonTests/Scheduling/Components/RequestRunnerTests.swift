import Core
import Notices
import Store
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon

@Suite("Requests besides transfers, without a daemon")
struct RequestRunnerTests {
    /// Reports the bytes of each body, and answers.
    private struct AnsweringTransport: Transporting {
        func send(_ request: Request) async throws(TransportError) -> Response {
            request.onWire?(Int64(request.body.count ?? 0))
            return Response(status: 200)
        }
    }

    private static let account = "hook door"

    private static func send(with permit: TransferPermit) async -> Int? {
        let request = Request("POST", "http://door.example/", body: .bytes([UInt8](repeating: 1, count: 700)))
        // A refusal is an answer without a status.
        return try? await PermittedTransport(AnsweringTransport()).send(request, with: permit).status
    }

    private static func used(_ scene: ComponentScene) async throws -> Int64 {
        try await scene.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
            .reduce(0) { $0 + $1.spending.bytes }
    }

    @Test("a request that policy allows is sent once, and its bytes are in the ledger when it has ended")
    func sent() async throws {
        let scene = try await ComponentScene()
        await scene.scheduler.change { facts in
            _ = facts.network.record(
                .init(reachability: .any, route: .open(.any), since: WallTime(milliseconds: 0)), for: Self.account)
        }
        let result = await RequestRunner(scheduler: scene.scheduler).run(.notice(.policy), at: Self.account) {
            await Self.send(with: $0)
        }
        let answer = try result.get()
        #expect(answer.answer == 200 && answer.hold == nil && answer.cost.bytes == 700)
        #expect(try await Self.used(scene) == 700)
        #expect(await scene.scheduler.isIdle)
    }

    @Test("a request without a route is not sent, and its hold is the answer")
    func held() async throws {
        let scene = try await ComponentScene()
        await scene.scheduler.setRoute(to: Self.account, isOpen: false)
        let result = await RequestRunner(scheduler: scene.scheduler).run(.notice(.policy), at: Self.account) {
            Issue.record("it was sent")
            return await Self.send(with: $0)
        }
        guard case .failure(let held) = result else {
            Issue.record("it was allowed")
            return
        }
        #expect(held.hold.kind == .offline)
        #expect(try await Self.used(scene) == 0)
    }
}
