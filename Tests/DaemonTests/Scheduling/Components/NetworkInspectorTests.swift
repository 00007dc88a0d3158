import Core
import Linux
import Names
import Synchronization
import TestKit
import Testing

@testable import Daemon

/// Only loopback and temporary folders are asked, and names are resolved by the test.
@Suite("Inspections of the network, without a daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct NetworkInspectorTests {
    private let clocks = ManualClocks()

    private func inspector(_ resolver: @escaping AddressCache.Resolver = { _, _ in throw Unexpected() })
        -> NetworkInspector
    {
        NetworkInspector(clocks: clocks, names: AddressCache(resolver: resolver), busAddress: "unix:path=/nowhere")
    }

    private struct Unexpected: Error {}

    @Test("this machine and its folders are local, and without rules about cost nothing more is found out")
    func local() async throws {
        let folder = TemporaryFolder()
        let state = await inspector().inspect(
            at: ["here": .here, "archive": .folder(folder.path, cost: nil)], depends: false, gatewaysMatter: false,
            mayAsk: { _, _, _ in false })
        #expect(state.reaches == ["here": .local, "archive": .local])
        #expect(state.metering == nil && state.nameServers == [:] && !state.isUnfinished)
        #expect(state.addresses?.contains(where: \.isLoopback) == true)
    }

    @Test("while rules depend on costs, a server is not judged before NetworkManager has answered")
    func unanswered() async throws {
        let state = await inspector().inspect(
            at: ["nas": .server(host: "127.0.0.1", port: 443), "here": .here], depends: true, gatewaysMatter: false,
            mayAsk: { _, _, _ in true })
        guard case .unseen(let text)? = state.reaches["nas"] else {
            Issue.record("\(String(describing: state.reaches["nas"]))")
            return
        }
        #expect(text.contains("have not answered yet"))
        #expect(state.reaches["here"] == .local)
        #expect(state.metering != nil)
    }

    @Test("a name is not looked up where no rule needs its address")
    func names() async throws {
        let asked = Atomic(0)
        let inspector = inspector { _, _ in
            _ = asked.add(1, ordering: .relaxed)
            throw Unexpected()
        }
        _ = await inspector.inspect(
            at: ["nas": .server(host: "nas.example", port: 443)], depends: false, gatewaysMatter: false,
            mayAsk: { _, _, _ in true })
        #expect(asked.load(ordering: .relaxed) == 0)
    }

    @Test("a system bus that does not answer is reported once as the reason, and the listener is told")
    func noBus() async throws {
        let told = Mutex<[NetworkEvents.Kind]>([])
        let inspector = inspector()
        defer { inspector.stop() }
        try inspector.listen { kind in told.withLock { $0.append(kind) } }
        #expect(inspector.report == nil)
        inspector.listenToManagers(true)
        try await eventually("the failure is reported") { inspector.report?.trouble != nil }
        try await eventually("the listener is told") { told.withLock { $0.contains(.mayForbid) } }
        let state = await inspector.inspect(
            at: ["nas": .server(host: "127.0.0.1", port: 443)], depends: true, gatewaysMatter: false,
            mayAsk: { _, _, _ in true })
        if case .unseen? = state.reaches["nas"] { Issue.record("the managers' failure hides the routes") }
        inspector.listenToManagers(false)
        #expect(inspector.report == nil)
    }
}
