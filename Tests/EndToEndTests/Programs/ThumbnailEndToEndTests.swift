import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Pictures of recordings, with the built program and the ffmpeg of this machine.
@Suite(
    "Thumbnails, with the built program", .timeLimit(.minutes(Patience.minutes(3))),
    .enabled(
        if: Program.installed("ffmpeg") != nil && Confinement.Support.here.holdsDecoders,
        "needs ffmpeg, Landlock (Linux 5.13) and seccomp"))
struct ThumbnailEndToEndTests {
    private struct Listed: Decodable {
        struct Upload: Decodable { var id, name, destination, state: String }
        var uploads: [Upload]
    }

    private func ask(_ fixture: DaemonFixture, _ path: String) async throws -> Wire.Reply {
        let wire = try Wire(unix: fixture.socket)
        try await wire.send("GET /v1/\(path) HTTP/1.1\r\nHost: sluice\r\n\r\n")
        return try await wire.reply()
    }

    /// Returns once the contents of all are known, by which pictures are kept.
    private func uploads(_ fixture: DaemonFixture, _ count: Int) async throws -> [Listed.Upload] {
        try await eventually("\(count) uploads are there") {
            let reply = try await ask(fixture, "uploads")
            let list = try JSONDecoder().decode(Listed.self, from: Data(reply.body)).uploads
            return list.count == count && list.allSatisfy { $0.state != "staging" } ? list : nil
        }
    }

    private func started(_ fixture: DaemonFixture, environment: [String: String] = [:]) async throws {
        try fixture.startDaemon(environment: environment)
        try await eventually("the daemon has started") {
            try fixture.daemon?.requireRunning()
            return try await fixture.status()?.starting == false
        }
    }

    @Test(
        "a picture comes out of a staged recording, not while the machine is busy, and after a restart without ffmpeg")
    func life() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        fixture.destination = "http://127.0.0.1:1/"
        let busy = fixture.folder.path.appending("recording")
        fixture.policyKeys = ["busy: {file: \(busy.display)}"]
        try Files.replace(busy, with: [])
        try await started(fixture)
        try record(recording("whole/plain.mp4"), at: fixture.drop.appending("a.mp4"))
        try record(Array("no recording".utf8), at: fixture.drop.appending("b.mp4"))
        try record(recording("whole/camera.jpg"), at: fixture.drop.appending("c.jpg"))
        let list = try await uploads(fixture, 6)
        func upload(_ name: String, _ destination: String = "nas") throws -> String {
            "thumbnails/" + (try #require(list.first { $0.name == name && $0.destination == destination }).id)
        }
        let folder = fixture.state.appending("thumbnails")
        let held = try await ask(fixture, upload("a.mp4"))
        #expect(held.status == 503 && held.headers["retry-after"] == "30")
        #expect(held.text.contains("recording` exists"), "\(held.text)")
        #expect(try FileStatus.ifPresent(at: folder) == nil)

        try Files.remove(busy)
        let first = try await eventually("there is a picture") {
            let reply = try await ask(fixture, upload("a.mp4"))
            return reply.status == 200 ? reply : nil
        }
        #expect(first.headers["content-type"] == "image/jpeg" && first.headers["x-content-type-options"] == "nosniff")
        #expect(first.body.starts(with: [0xFF, 0xD8, 0xFF]) && first.body.suffix(2).elementsEqual([0xFF, 0xD9]))
        #expect(try await ask(fixture, upload("a.mp4", "archive")).body == first.body)
        #expect(try await ask(fixture, upload("c.jpg")).status == 200)
        let broken = try await ask(fixture, upload("b.mp4"))
        #expect(broken.status == 404 && broken.text.contains("ffmpeg cannot read the file"), "\(broken.text)")
        #expect(try Files.names(in: folder).count == 3)
        #expect(try FileStatus(at: folder).mode & 0o777 == 0o700)

        // What is there is shown at any time, and by a daemon that finds no ffmpeg.
        try Files.replace(busy, with: [])
        try await eventually("the machine is busy again") {
            let reply = try await ask(fixture, "status")
            return reply.text.contains("recording` exists")
        }
        #expect(try await ask(fixture, upload("a.mp4")).body == first.body)
        _ = try await fixture.stopDaemon()
        try await started(fixture, environment: ["PATH": "/nowhere"])
        #expect(try await ask(fixture, upload("a.mp4")).body == first.body)
        for name in try Files.names(in: folder) { try Files.remove(folder.appending(name)) }
        try Files.remove(busy)
        try await eventually("the machine is not busy, and has no ffmpeg") {
            try await ask(fixture, upload("a.mp4")).text.contains("ffmpeg is not installed")
        }
    }

    /// The program, as it is started with lower limits than it wants for ffmpeg, and without the right to raise them.
    private func limited(_ folder: TemporaryFolder) throws -> FilePath {
        // Fewer descriptors than the daemon has; it raises that for itself alone. A hard limit of the stack below that
        // of the sandbox.
        try folder.writeProgram(
            "limited",
            """
            ulimit -S -n 20
            ulimit -s 1024
            [ "$(id -u)" = 0 ] || exec '\(try Setting.binary().display)' "$@"
            exec setpriv --bounding-set=-sys_resource -- '\(try Setting.binary().display)' "$@"
            """)
    }

    @Test("a daemon with more descriptors than its programs are to have, and with low hard limits, makes pictures too")
    func limits() async throws {
        let place = TemporaryFolder()
        let fixture = try DaemonFixture(source: .keep, binary: limited(place))
        fixture.destination = "http://127.0.0.1:1/"
        try await started(fixture)
        let pid = try #require(fixture.daemon?.pid)
        #expect(try Files.names(in: FilePath("/proc/\(pid)/fd")).count > 20)
        try record(recording("whole/plain.mp4"), at: fixture.drop.appending("a.mp4"))
        let list = try await uploads(fixture, 1)
        let reply = try await ask(fixture, "thumbnails/" + (try #require(list.first).id))
        #expect(reply.status == 200, "\(reply.text)")
        _ = try await fixture.stopDaemon()
    }

    @Test("a picture waits for the disk of the file, and none is made of other content that looks like it")
    func otherContent() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        fixture.folderKeys = ["staging: {copy: in-place}"]
        try await started(fixture)
        for name: FilePath in ["a.mp4", "b.mp4"] {
            try record(recording("whole/plain.mp4"), at: fixture.drop.appending(name))
        }
        let list = try await uploads(fixture, 2)
        func upload(_ name: String) throws -> String {
            "thumbnails/" + (try #require(list.first { $0.name == name }).id)
        }
        let away = fixture.folder.path.appending("away")
        try Files.rename(fixture.drop, to: away)
        let held = try await ask(fixture, upload("a.mp4"))
        #expect(held.status == 503 && held.text.contains("disk"), "\(held.text)")
        try Files.rename(away, to: fixture.drop)
        #expect(try await ask(fixture, upload("a.mp4")).status == 200)

        let path = fixture.drop.appending("b.mp4")
        let file = try Descriptor.open(path, for: .updating)
        let status = try FileStatus(of: file, named: path)
        #expect([UInt8(0)].withUnsafeBytes { file.write($0, at: status.size / 2, named: path) }.0 == 1)
        try file.setModified(status.modified, named: path)
        let other = try await ask(fixture, upload("b.mp4"))
        #expect(other.status == 404 && other.text.contains("unchanged source"), "\(other.text)")
        _ = try await fixture.stopDaemon()
    }

    @Test("pictures that were made are gone when a reload or a start switches them off")
    func switchedOff() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        try await started(fixture)
        try record(recording("whole/plain.mp4"), at: fixture.drop.appending("a.mp4"))
        let picture = "thumbnails/" + (try #require(try await uploads(fixture, 1).first).id)
        let folder = fixture.state.appending("thumbnails")
        func isGone() async throws {
            try await eventually("the pictures are gone") { try FileStatus.ifPresent(at: folder) == nil }
            let reply = try await ask(fixture, picture)
            #expect(reply.status == 404 && reply.text.contains("thumbnails: false"), "\(reply.text)")
        }
        #expect(try await ask(fixture, picture).status == 200)
        fixture.controlKeys = ", thumbnails: false"
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        try await isGone()
        fixture.controlKeys = ""
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        #expect(try await ask(fixture, picture).status == 200)
        #expect(try Files.names(in: folder).count == 1)
        _ = try await fixture.stopDaemon()
        fixture.controlKeys = ", thumbnails: false"
        try await started(fixture)
        try await isGone()
        _ = try await fixture.stopDaemon()
    }
}
