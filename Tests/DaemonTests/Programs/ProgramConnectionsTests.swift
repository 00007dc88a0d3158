import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Connections of programs")
struct ProgramConnectionsTests {
    private let elsewhere = ProgramPayer.hook("door")

    /// Runs curl as a program of `payer`.
    ///
    /// - Returns: What it printed, and what became of its connections.
    private func curl(
        _ url: String, for payer: ProgramPayer, port: Int, in scene: ComponentScene
    ) async throws -> (text: String, cost: Spending, hold: Hold?) {
        let policed = scene.parts.policed(scene.scheduler)
        let gate = policed.gate(for: payer)
        let network = try policed.network(to: ProgramServers(ports: [port]), through: gate)
        let folder = TemporaryFolder()
        let variables = network.environment.map { variable in
            let cut = variable.firstIndex(of: "=") ?? variable.endIndex
            return (String(variable[..<cut]), String(variable[cut...].dropFirst()))
        }
        let child = try Child(
            "/usr/bin/curl", ["-sS", "-m", "20", url], environment: Dictionary(variables, uniquingKeysWith: { $1 }),
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        _ = try await child.end(within: .seconds(40))
        let (cost, hold) = await gate.finished()
        return (network.cover(try child.standardOutput() + child.standardError()), cost, hold)
    }

    @Test(
        "an address of this machine is refused in each spelling, and its server sees nothing",
        arguments: ["127.0.0.1", "127.0.0.2", "localhost", "a.localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"])
    func ownAddresses(_ host: String) async throws {
        let (scene, server) = (try await ComponentScene(), try FakeServer { $0.reply(200, [], "reached") })
        await scene.scheduler.setRoute(to: elsewhere.account, isOpen: true)
        let (text, cost, hold) = try await curl(
            "http://\(host):\(server.port)/", for: elsewhere, port: server.port, in: scene)
        #expect(text.contains("is an address of this machine"), "\(text)")
        #expect(cost == .none && hold == nil && server.connectionCount == 0)
    }

    @Test("while policy holds everything, a connection is refused with the hold, which the run reports")
    func held() async throws {
        let scene = try await ComponentScene()
        await scene.scheduler.setRoute(to: elsewhere.account, isOpen: false)
        let (text, _, hold) = try await curl("http://203.0.113.9/", for: elsewhere, port: 80, in: scene)
        let found = try #require(hold)
        #expect(text.contains("policy does not allow it now: \(found.text)"), "\(text)")
    }

    @Test("the connections of an export are held by a pause of its folder, and those of another folder are not")
    func folder() async throws {
        let scene = try await ComponentScene()
        for name in ["cam", "door"] {
            await scene.scheduler.setRoute(to: ProgramPayer.export(folder: name).account, isOpen: true)
        }
        await scene.scheduler.change { [clocks = scene.clocks] facts in
            facts.pauses.replace([PauseRecord(scope: .folder, name: "cam", since: clocks.wall(), until: nil)])
        }
        #expect(await scene.scheduler.hold(on: .export(folder: "cam"))?.text.contains("cam") == true)
        #expect(await scene.scheduler.hold(on: .export(folder: "door")) == nil)
        #expect(
            await scene.scheduler.facts.requests.closed == [ProgramPayer.export(folder: "cam").account])
    }

    private func server(_ scheduler: Scheduler) async throws -> ProgramConnections.Server {
        ProgramConnections.Server(
            addresses: [try #require(IPAddress("203.0.113.9"))], port: 80, reachability: .any,
            generation: await scheduler.facts.generation)
    }

    @Test("routes that were found before policy changed are found again, and in the end they serve")
    func generation() async throws {
        let scene = try await ComponentScene()
        let server = try await server(scene.scheduler)
        await scene.scheduler.change { $0.generation.noteChange() }
        let late = await scene.scheduler.connect(to: server, for: elsewhere, evenIfChanged: false) { _ in true }
        #expect(late == nil)
        let last = await scene.scheduler.connect(to: server, for: elsewhere, evenIfChanged: true) { _ in true }
        let request = try #require(try last?.get())
        #expect(await scene.scheduler.requests.finish(request).answer)
    }

    @Test("a pause returns when the connections that it stops are closed, and not before")
    func pause() async throws {
        let scene = try await ComponentScene()
        let (scheduler, closing, closed) = (scene.scheduler, AsyncSignal(), StopFlag())
        let stopped = StopFlag()
        let started = await scheduler.connect(
            to: try await server(scheduler), for: elsewhere, evenIfChanged: true
        ) { _ in
            await withTaskCancellationHandler {
                // A task of its own: a stop does not end its wait.
                await Task { await closing.wait() }.value
            } onCancel: {
                stopped.set()
            }
            closed.set()
        }
        let request = try #require(try started?.get())
        try await scene.store.write { [clocks = scene.clocks] in
            try $0.pauses.set(PauseRecord(scope: .all, name: "", since: clocks.wall(), until: nil))
        }
        let pause = Task {
            try await scheduler.reloadPauses()
            return closed.isSet
        }
        try await eventually("the connection is stopped") { stopped.isSet }
        #expect(!closed.isSet)
        closing.signal()
        #expect(try await pause.value)
        #expect(await scheduler.requests.finish(request).hold?.kind == .global)
    }
}
