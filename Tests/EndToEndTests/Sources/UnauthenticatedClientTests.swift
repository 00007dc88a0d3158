import Core
import Glibc
import Linux
import TestKit
import Testing

/// Attacks on a receiver and on the control address by clients without a token.
@Suite("Slow clients", .timeLimit(.minutes(Patience.minutes(3))))
struct UnauthenticatedClientTests {
    private static let token = "a token that nobody guesses"

    /// Opens 640 connections and sends a byte of a head on each now and then; a connection that is closed is opened
    /// again. A separate process, since this one would run out of descriptors.
    private static let siege = """
        import select, socket, sys, time
        port = int(sys.argv[1])
        head = b"POST /files/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nX: "
        waiting = {}
        def come():
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", port))
            waiting[s] = 0
        for _ in range(640): come()
        turn = 0
        while True:
            for s, sent in list(waiting.items()):
                try:
                    s.send(head[sent:sent + 1] or b"x")
                    waiting[s] = sent + 1
                except BlockingIOError: pass
                except OSError:
                    del waiting[s]
                    s.close()
                    come()
            turn += 1
            if turn == 2: print("ready", flush=True)
            time.sleep(0.2)
        """

    /// Runs the body while 640 connections send their heads a byte at a time.
    private func besieged(_ port: Int, in folder: FilePath, _ body: () async throws -> Void) async throws {
        let script = folder.appending("siege.py")
        try Files.replace(script, with: Array(Self.siege.utf8))
        let besieger = try Child(
            "/usr/bin/env", ["python3", script.display, "\(port)"], output: folder.appending("siege.out"),
            errors: folder.appending("siege.err"))
        defer { besieger.end(with: SIGKILL) }
        _ = try await besieger.line(after: "ready")
        try await body()
        let complaint = try besieger.standardError()
        #expect(besieger.ended == nil, "\(complaint)")
    }

    @Test("a camera uploads while 640 slow clients send their headers a byte at a time")
    func uploads() async throws {
        let fixture = try await fixture()
        try await uploads(fixture, to: try #require(fixture.address.split(separator: ":").last.flatMap { Int($0) }))
    }

    @Test(
        "a camera uploads through nginx while 640 slow clients send nginx their headers a byte at a time",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func uploadsThroughNginx() async throws {
        let fixture = try await fixture("--trusted-proxy", "127.0.0.1")
        let receiver = fixture.address
        let (nginx, port) = try await Gateway.nginx.start(in: fixture.folder.path.appending("nginx")) { port in
            """
            server {
              listen 127.0.0.1:\(port);
              location / {
                proxy_pass http://\(receiver); proxy_request_buffering off; client_max_body_size 0;
                proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
              }
            }
            """
        }
        defer { nginx.end(with: SIGKILL) }
        fixture.destination = "http://127.0.0.1:\(port)/files/"
        try await uploads(fixture, to: port)
    }

    @Test("a receiver with 200 descriptors limits its connections accordingly and reports it, and a camera uploads")
    func fewDescriptors() async throws {
        let folder = TemporaryFolder()
        let script = "[ \"$1\" = receive ] && ulimit -n 200\nexec \(try Setting.binary().display) \"$@\""
        let limited = try folder.writeProgram("limited", script)
        let fixture = try await fixture(binary: limited)
        let said = try #require(fixture.receiver).standardError()
        #expect(said.contains("connections=68") && said.contains("open_files=200"), "\(said)")
        try await uploads(fixture, to: try #require(fixture.address.split(separator: ":").last.flatMap { Int($0) }))
    }

    private func fixture(_ more: String..., binary: FilePath? = nil) async throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .delete, binary: binary ?? Setting.binary())
        let file = try fixture.folder.write("token", Array(Self.token.utf8))
        fixture.receiverKeys = ["--token-file", file.display] + more
        fixture.destinationKeys = ", token: {file: \(file.display)}"
        try await fixture.startReceiver()
        return fixture
    }

    private func uploads(_ fixture: DaemonFixture, to port: Int) async throws {
        try await besieged(port, in: fixture.folder.path) {
            try fixture.startDaemon()
            for number in 0..<5 {
                let name = FilePath("clip-\(number).mp4")
                let content = noise(3_000_000 + number)
                try Files.replace(fixture.drop.appending(name), with: content)
                try await eventually("\(name.display) has been received", within: .seconds(40)) {
                    try FileStatus.ifPresent(at: fixture.received.appending(name))?.size == Int64(content.count)
                }
                #expect(try Files.read(fixture.received.appending(name), limit: 8 << 20) == content)
            }
        }
    }

    @Test("the control address serves clients with the token while 640 others send their headers a byte at a time")
    func control() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let file = try fixture.folder.write("token", Array(Self.token.utf8))
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(file.display)}}]"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let port = try await eventually("the log names the port of the API", every: .milliseconds(50)) {
            try fixture.daemon?.standardError().firstMatch(of: /\(port ([0-9]+)\)/).flatMap { Int($0.1) }
        }
        try await besieged(port, in: fixture.folder.path) {
            for _ in 0..<20 {
                let wire = try Wire(port: port)
                try await wire.send(
                    "GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: Bearer \(Self.token)\r\n\r\n")
                #expect(try await wire.reply().status == 200)
                #expect(try await fixture.runVerb("status") != nil)
            }
        }
    }
}
