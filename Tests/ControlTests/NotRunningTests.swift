import API
import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

@testable import Control
@testable import Daemon

@Suite("Without a daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct NotRunningTests {
    @Test("the client names the socket that it tried and what it found there")
    func missing() async throws {
        let folder = TemporaryFolder()
        let transport = Transport()
        let gone = folder.path.appending("none.sock")
        await #expect(throws: ControlError.notRunning(socket: gone, reason: "there is no such socket")) {
            try await ControlClient(socket: gone, transport: transport).status()
        }
        let dead = try folder.write("dead.sock", [])
        await #expect(
            throws: ControlError.notRunning(socket: dead, reason: "the socket exists, but no daemon listens on it")
        ) {
            try await ControlClient(socket: dead, transport: transport).status()
        }
        await transport.stop()
    }

    @Test(
        "the remedy starts the unit whose socket it is, or no unit",
        arguments: [
            ("/run/sluice/control.sock", "Start it with `systemctl start sluice` or "),
            ("/run/sluice-door/control.sock", "Start it with `systemctl start sluice@door` or "),
            ("/run/user/1000/sluice/control.sock", "Start it with `systemctl --user start sluice` or "),
            ("/home/anna/.local/state/sluice/control.sock", "Start it with `systemctl --user start sluice` or "),
            ("/run/other/control.sock", "Start it with its service or "),
            ("/srv/box/own.sock", "Start it with its service or "),
        ])
    func remedy(socket: String, start: String) {
        let error = ControlError.notRunning(socket: FilePath(socket), reason: "there is no such socket")
        #expect(error.remedy.hasPrefix(start), "\(error.remedy)")
    }

    @Test("a stopped server leaves no socket behind, and a new one may take its place")
    func restart() async throws {
        let line = try await ControlPair()
        await line.server.stop()
        #expect(try FileStatus.ifPresent(at: line.socket) == nil)
        let next = try await ControlServer.start(socket: line.socket, operations: line.daemon)
        #expect(try await line.client.status() == .sample)
        await line.transport.stop()
        await next.stop()
    }
}
