import Core
import FoundationEssentials
import Linux
import TestKit

/// A daemon with a hook that runs a program with `network: policy`, and a web server behind two routes.
final class EgressScene {
    let network: NetworkEndToEndTests.Scene
    let port: Int
    private let server: Child
    /// The last test event, which says why its program did not start.
    private var last: Trial?
    var fixture: DaemonFixture { network.fixture }
    /// What the program prints.
    var output: FilePath { fixture.folder.path.appending("said") }
    var url: String { "http://\(TwoRoads.server):\(port)" }

    /// Stores nothing: it reads each body, and sends as many bytes as a path says, slowly for `/slow/`.
    private static let program = """
        import http.server, sys, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *words): pass
            def take(self):
                count = got = int(self.headers.get("Content-Length") or 0)
                while count > 0:
                    count -= len(self.rfile.read(min(count, 1 << 16)) or b" " * count)
                words = self.path.split("/")
                body = b"a" * int(words[-1]) if words[-1].isdigit() else b"got %d\\n" % got
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD": self.wfile.write(body)
            do_GET = do_PUT = do_POST = do_HEAD = take
        http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
        """

    /// - Parameters:
    ///   - script: The lines of the hook's program, after `$url` is set.
    ///   - keys: Further keys of the hook, as YAML.
    ///   - size: Size of `body`, a file beside the program.
    ///   - rules: As for ``NetworkEndToEndTests/Scene``; `nil` for those of that.
    init(
        _ policy: [String] = ["metered: pause"], script: String, keys: String = "", size: Int = 2_000_000,
        rules: String? = nil
    ) async throws {
        network =
            if let rules {
                try await NetworkEndToEndTests.Scene(policy, rules: rules)
            } else { try await NetworkEndToEndTests.Scene(policy) }
        port = try Loopback.freePort()
        let (roads, folder) = (network.roads, network.fixture.folder)
        let path = try folder.write("server.py", Array(Self.program.utf8))
        server = try roads.site.start(
            "/usr/bin/python3", [path.display, TwoRoads.server, "\(port)"], output: folder.path.appending("server.out"),
            errors: folder.path.appending("server.err"))
        let hook = try folder.writeProgram(
            "tell",
            "exec >> \(folder.path.appending("said").display) 2>&1\ncat > /dev/null\n"
                + "url=http://\(TwoRoads.server):\(port)\n\(script)")
        fixture.topKeys = [
            "hooks:",
            "  - {name: tell, on: [paused], command: [\(hook.display)], network: policy, ports: [\(port)], timeout: 60s\(keys)}",
        ]
        let body = folder.path.appending("body")
        try Files.replace(body, with: Array(repeating: 0x61, count: size))
        let site = roads.site
        let place = port
        try await eventually("the server listens") {
            try await blocking {
                let table = try site.run { try Files.read("/proc/thread-self/net/tcp", limit: 1 << 20) }
                return String(decoding: table, as: UTF8.self).contains(String(format: place))
            }
        }
    }

    /// Gives the folder an export in place of the hook. `$1` is the source, `$2` the output.
    func export(_ script: String) throws {
        let program = try fixture.folder.writeProgram(
            "convert", "exec >> \(output.display) 2>&1\nurl=\(url)\n\(script)")
        fixture.topKeys = []
        fixture.folderKeys = [
            "export: {command: [\(program.display), \"{input}\", \"{output}\"], output: \"{stem}.mp4\", network: policy, ports: [\(port)]}"
        ]
    }

    /// Lines of a program that show its proxy to the test, and wait for ``release()``.
    static let waiting = """
        here=$(dirname $0); umask 077
        [ -p $here/gate ] || mkfifo $here/gate
        echo $$ > $here/pid; echo $http_proxy > $here/new; mv $here/new $here/lease
        read line < $here/gate

        """

    /// The proxy of the program that waits, with its credentials; and its process.
    func lease() async throws -> (address: String, port: String, pid: String) {
        let folder = fixture.folder.path
        func told() -> String {
            let words = try? last.map { try $0.child.standardOutput() + $0.child.standardError() }
            return "\(words ?? "no test event"); \(fixture.lastWords())"
        }
        return try await eventually("the program waits; \(told())") {
            guard try FileStatus.ifPresent(at: folder.appending("lease")) != nil else { return nil }
            func line(_ name: String) throws -> String {
                String(decoding: try Files.read(folder.appending(FilePath(name)), limit: 4096), as: UTF8.self)
                    .split(separator: "\n").joined()
            }
            let address = try line("lease")
            return (address, String(address.split(separator: ":").last ?? ""), try line("pid"))
        }
    }

    /// Lets the program continue.
    func release() async throws {
        try Files.remove(fixture.folder.path.appending("lease"))
        _ = try await run("/bin/sh", ["-c", "echo go > \(fixture.folder.path.appending("gate").display)"])
    }

    /// Runs a program in the network of the daemon.
    ///
    /// - Returns: How it has ended, and what it printed.
    func run(_ program: FilePath, _ words: [String]) async throws -> (ending: Child.Ending, text: String) {
        let output = fixture.folder.path.appending(FilePath("run-\(hexadecimal(Random.bytes(6)))"))
        let child = try network.roads.box.start(
            program, words, environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"], output: output,
            errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
        let ending = try await child.end(within: .seconds(40))
        return (ending, try child.standardOutput() + child.standardError())
    }

    deinit { _ = server.end(with: 9) }

    func start() async throws {
        try fixture.startDaemon()
        try await eventually("the daemon has started") {
            try await fixture.runVerb("status", ["--json"])?.contains("\"starting\":false") == true
        }
    }

    struct Result: Decodable {
        struct Hold: Decodable { var kind, text: String }
        var ok: Bool
        var detail: String
        var sent, received: Int64?
        var hold: Hold?
    }

    /// A test event that the hook is sent.
    struct Trial {
        fileprivate let child: Child

        /// Returns when the hook has it.
        func result() async throws -> Result {
            _ = try await child.end(within: .seconds(90))
            return try JSONDecoder().decode(Result.self, from: Data(try child.standardOutput().utf8))
        }
    }

    /// Sends the hook a test event.
    func tell() async throws -> Result { try await begin().result() }

    /// Begins to send the hook a test event.
    func begin() throws -> Trial {
        let folder = fixture.folder.path.appending(FilePath("hook-\(hexadecimal(Random.bytes(6)))"))
        let child = try Child(
            fixture.binary, ["hook", "tell", "--json", "--config", fixture.config.display], output: folder,
            errors: FilePath(bytes: folder.bytes + Array(".err".utf8)))
        let trial = Trial(child: child)
        last = trial
        return trial
    }

    /// The output of `sluice check --json`, in the network of the daemon.
    func check() async throws -> String {
        let output = fixture.folder.path.appending("check")
        let child = try network.roads.box.start(
            fixture.binary, ["check", "--json", "--config", fixture.config.display], output: output,
            errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
        _ = try await child.end(within: .seconds(60))
        return try child.standardOutput()
    }

    /// What the program has printed so far.
    func said() throws -> String {
        try FileStatus.ifPresent(at: output).map { _ in
            String(decoding: try Files.read(output, limit: 1 << 20), as: UTF8.self)
        } ?? ""
    }

    func received(_ name: String) async throws -> Int64 {
        let roads = network.roads
        return try await blocking { try roads.received(by: name) }
    }

    /// The most bytes that have come a second time, as on a busy machine. Of those, and of the longer headers that report
    /// them to the server (RFC 2883), the kernel tells no length, so the ledger lacks it.
    func repeatedBytes() async throws -> Int64 {
        let roads = network.roads
        return try await blocking { try roads.repeatedBytes() }
    }
}

extension String {
    /// A port as the kernel's table has it.
    fileprivate init(format port: Int) {
        let digits = Swift.String(port, radix: 16, uppercase: true)
        self = ":" + Swift.String(repeating: "0", count: 4 - digits.count) + digits
    }
}
