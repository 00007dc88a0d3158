import Core
import Linux
import TestKit
import Testing

/// A folder that the service's sandbox makes read-only, as `ProtectSystem=strict` does.
@Suite(
    "Read-only folders, with the built program", .enabled(if: SmallDisk.isPossible, "only root may mount"),
    .timeLimit(.minutes(Patience.minutes(2))))
struct ReadOnlyFolderTests {
    @Test("a source that cannot be deleted stays, and the log names the verb that opens its folder")
    func named() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let socket = fixture.folder.path.appending("notify")
        let supervisor = Supervisor(socket)
        try await fixture.startReceiver()
        try fixture.startDaemon(
            environment: ["NOTIFY_SOCKET": socket.display],
            inMounts: """
                mount --bind "\(fixture.drop.display)" "\(fixture.drop.display)"
                mount -o remount,ro,bind "\(fixture.drop.display)"
                """)
        try await eventually("the daemon is ready") { supervisor.next()?.hasPrefix("READY=1\n") == true }
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 1000, relative: "a.mp4"))
        try await eventually("the log says how to open the folder: \(fixture.lastWords())") {
            try fixture.daemon?.standardError().contains("`sudo sluice systemd-paths --install` opens it")
        }
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("a.mp4")) != nil)
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
