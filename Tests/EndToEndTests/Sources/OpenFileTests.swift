import Core
import Glibc
import Linux
import TestKit
import Testing

/// Files of one user and a daemon of another, as in the packaged unit: with `CAP_LEASE` or without, and a `/proc` that
/// hides processes of other users.
@Suite(
    "Files that another user has open", .enabled(if: geteuid() == 0 && NetworkNamespace.isPossible), .serialized,
    .timeLimit(.minutes(Patience.minutes(2))))
struct OpenFileTests {
    /// A user ID that no account has.
    private static let user = 64_124

    private func start(_ fixture: DaemonFixture, withLease: Bool) throws {
        let folder = fixture.folder.path.display
        let rights = withLease ? "-all,+lease" : "-all"
        try fixture.startDaemon(
            inMounts: """
                cp "$1" \(folder)/sluice
                shift
                chown \(Self.user):\(Self.user) \(folder) \(folder)/*
                chmod 0777 \(folder)/drop
                mount -t proc -o hidepid=invisible proc /proc
                set -- setpriv --reuid \(Self.user) --regid \(Self.user) --clear-groups --no-new-privs \
                    --bounding-set=\(rights) --inh-caps=\(rights) --ambient-caps=\(rights) -- \(folder)/sluice "$@"
                """)
    }

    /// A file of root's that all users may read.
    private func create(_ path: FilePath, _ content: [UInt8]) throws -> Descriptor {
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        try file.setMode(0o644, named: path)
        return file
    }

    private func received(_ fixture: DaemonFixture) throws -> Set<[UInt8]> {
        Set(
            try Outcome.files(in: fixture.received, hidden: false).map {
                try Files.read(fixture.received.appending($0), limit: 1 << 30)
            })
    }

    private func says(
        _ words: String, _ fixture: DaemonFixture, _ verb: String, _ arguments: [String] = []
    ) async throws {
        try await eventually("\(verb) contains \(words); \(fixture.lastWords())", every: .milliseconds(50)) {
            try await fixture.runVerb(verb, arguments)?.contains(words) == true
        }
    }

    @Test("with CAP_LEASE an open file is not taken; once closed, it arrives complete, once, and is released")
    func leased() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try start(fixture, withLease: true)
        let path = fixture.drop.appending("clip.mp4")
        let content = noise(400_000)
        let file = try create(path, Array(content[..<200_000]))
        try await says("open for writing", fixture, "why", [path.display])
        #expect(try received(fixture).isEmpty)
        try file.write(Array(content[200_000...]), named: path)
        try file.close(named: path)
        try await eventually("the source has been released", within: .seconds(40)) {
            try FileStatus.ifPresent(at: path) == nil
        }
        #expect(try received(fixture) == [content])
    }

    @Test("without CAP_LEASE, half of the file may be sent, but it is never deleted; the rest is a new version")
    func blind() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try start(fixture, withLease: false)
        let path = fixture.drop.appending("clip.mp4")
        let content = noise(400_000)
        let file = try create(path, Array(content[..<200_000]))
        try await says("does not report whether it is open for writing", fixture, "show", [path.display])
        try await says("its source is kept: the kernel does not report", fixture, "why", [path.display])
        #expect(try FileStatus(at: path).size == 200_000)
        #expect(try received(fixture) == [Array(content[..<200_000])])
        try await says("folder camera: verified sources are kept", fixture, "status")
        try await says("CAP_LEASE", fixture, "status")
        for verb in ["check", "doctor"] {
            try await says("folder camera: verified sources are kept", fixture, verb, ["--json"])
        }
        try file.write(Array(content[200_000...]), named: path)
        try file.close(named: path)
        try await eventually("the receiver has the new version", within: .seconds(40)) {
            try received(fixture) == [content, Array(content[..<200_000])]
        }
        try await eventually("both uploads count as completed") {
            try await fixture.status()?.counts == Status.Counts(ongoing: 0, completed: 2, failed: 0, cancelled: 0)
                && Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        #expect(try Files.read(path, limit: 1 << 30) == content)
    }

    @Test(
        "a file from before the start that no process has open is released only with CAP_LEASE",
        arguments: [true, false])
    func before(_ withLease: Bool) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        let path = fixture.drop.appending("clip.mp4")
        try create(path, noise(1000)).close(named: path)
        try start(fixture, withLease: withLease)
        if withLease {
            try await eventually("the source has been released; \(fixture.lastWords())", within: .seconds(40)) {
                try FileStatus.ifPresent(at: path) == nil
            }
        } else {
            try await says("does not report whether it is open for writing", fixture, "show", [path.display])
            #expect(try FileStatus.ifPresent(at: path) != nil)
        }
        #expect(try received(fixture) == [noise(1000)])
    }
}
