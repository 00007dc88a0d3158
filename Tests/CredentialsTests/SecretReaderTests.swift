import Core
import Credentials
import Glibc
import Synchronization
import TestKit
import Testing

@Suite("SecretReader")
struct SecretReaderTests {
    let folder = TemporaryFolder()
    let reader = SecretReader(variable: { name in
        ["TOKEN": "from the environment", "EMPTY": "", "PATH": "/usr/bin:/bin"][name]
    })

    private func problem(_ source: SecretSource, _ reader: SecretReader? = nil) async -> SecretError? {
        await #expect(throws: SecretError.self) { try await (reader ?? self.reader).read(source) }
    }

    @Test(
        "exactly one line feed is removed from the end of a file, and nothing else",
        arguments: [("abc\n", "abc"), ("abc", "abc"), ("abc\n\n", "abc\n"), (" abc \n", " abc "), ("a\nb\n", "a\nb")])
    func file(_ content: String, _ secret: String) async throws {
        let path = try folder.write("token", Array(content.utf8))
        #expect(try await reader.read(.file(path)).reveal() == secret)
    }

    @Test("what was read, or is in this process already, is known from then on")
    func known() async throws {
        let path = try folder.write("token", Array("from-a-file\n".utf8))
        await reader.of("nas").learn(
            texts: ["an-argument"],
            sources: [
                .environment("TOKEN"), .environment("ABSENT"), .literal("from-the-configuration"), .file("/none"),
                .file(path), .command(["/none"]),
            ])
        for text in ["an-argument", "from-a-file", "from the environment", "from-the-configuration"] {
            #expect(reader.known.cover("it printed `\(text)`") == "it printed `***`")
        }
    }

    @Test(
        "a file on a disk that does not answer is not read again while the first reading waits",
        .enabled(if: DeadDisk.isPossible, "needs root, and FUSE"))
    func deadDisk() async throws {
        let disk = try DeadDisk()
        let path = disk.path.display
        let readings = Mutex(0)
        let reader = SecretReader(variable: { _ in
            readings.withLock { $0 += 1 }
            return path
        })
        let sources = [SecretSource.credential("token")]
        for _ in 0..<3 { await reader.learn(texts: [], sources: sources) }
        #expect(readings.withLock { $0 } == 1)
        disk.release()
        try await eventually("it is read again after the first reading has ended") {
            await reader.learn(texts: [], sources: sources)
            return readings.withLock { $0 } > 1 ? true : nil
        }
    }

    @Test("headers are kept until they are refused, or until everything is read again")
    func renewal() async throws {
        let path = try folder.write("token", Array("old".utf8))
        let provider = CredentialProvider([.init("Authorization", prefix: "Bearer ", .file(path))], reader: reader)
        #expect(try await provider.current().headers.map(\.1) == ["Bearer old"])
        try folder.write("token", Array("new".utf8))
        #expect(try await provider.current().headers.map(\.1) == ["Bearer old"])
        reader.renew()
        #expect(try await provider.current().headers.map(\.1) == ["Bearer new"])
        try folder.write("token", Array("newest".utf8))
        let reading = try await provider.current().reading
        await provider.refused(reading)
        #expect(try await provider.current().headers.map(\.1) == ["Bearer newest"])
    }

    @Test("without the daemon a command with `network: policy` reaches nothing, and another one does")
    func confined() async throws {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(server) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> UInt16 in
                guard bind(server, pointer, size) == 0, listen(server, 5) == 0 else { return 0 }
                getsockname(server, pointer, &size)
                return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port.bigEndian }
            }
        }
        try #require(port > 0)
        // bash opens a connection by itself.
        let words = ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(port) && echo reached"]
        #expect(try await reader.read(.command(words)).reveal() == "reached")
        let held = await problem(.command(words, servers: ProgramServers()), reader.of("nas"))
        #expect(held?.isHeld == true)
        #expect(held.map { "\($0)".contains("check --running") } == true)
        // One that needs no network works.
        #expect(try await reader.read(.command(["/bin/echo", "key"], servers: ProgramServers())).reveal() == "key")
    }

    @Test("after one owner's secret is read again, no other is")
    func owners() async throws {
        let path = try folder.write("token", Array("old".utf8))
        let providers = ["one", "other"].map { CredentialProvider([.init("a", .file(path))], reader: reader.of($0)) }
        for provider in providers { #expect(try await provider.current().headers.map(\.1) == ["old"]) }
        try folder.write("token", Array("new".utf8))
        reader.renew(of: "one")
        #expect(try await providers[0].current().headers.map(\.1) == ["new"])
        #expect(try await providers[1].current().headers.map(\.1) == ["old"])
        reader.renew()
        #expect(try await providers[1].current().headers.map(\.1) == ["new"])
    }

    @Test("a link to the secret of the day is followed")
    func link() async throws {
        let target = try folder.write("v2", Array("new".utf8))
        let link = folder.path.appending("token")
        #expect(symlink(target.display, link.display) == 0)
        #expect(try await reader.read(.file(link)).reveal() == "new")
    }

    @Test("secrets are read from the environment, a command and the configuration")
    func others() async throws {
        #expect(try await reader.read(.environment("TOKEN")).reveal() == "from the environment")
        #expect(try await reader.read(.literal("inline")).reveal() == "inline")
        #expect(try await reader.read(.command(["echo", "a  $HOME `id`"])).reveal() == "a  $HOME `id`")
    }

    @Test("a systemd credential is read by its name, and no other file through it")
    func credential() async throws {
        try folder.write("token", Array("s\n".utf8))
        let path = folder.path.display
        let inside = SecretReader(variable: { $0 == "CREDENTIALS_DIRECTORY" ? path : nil })
        #expect(try await inside.read(.credential("token")).reveal() == "s")
        #expect(await problem(.credential("../token"), inside)?.problem == "that is not a valid name of a credential")
        #expect(await problem(.credential("token"))?.remedy.contains("LoadCredential=token") == true)
    }

    @Test("errors name problem and remedy, and never the content")
    func problems() async throws {
        #expect(await problem(.file(folder.path.appending("no")))?.problem == "it does not exist")
        #expect(await problem(.file(try folder.write("empty", Array("\n".utf8))))?.problem == "it is empty")
        #expect(await problem(.file(try folder.write("big", noise(70_000))))?.problem == "it is larger than 64 KiB")
        let bytes = await problem(.file(try folder.write("bytes", [0x73, 0xFF, 0xFE])))
        #expect(bytes?.problem == "it is not UTF-8 text")
        #expect(await problem(.environment("MISSING"))?.problem == "it is not set")
        #expect(await problem(.environment("EMPTY"))?.problem == "it is empty")
        #expect(await problem(.file(folder.path)) != nil)
    }

    @Test("a failed command is named without its arguments")
    func commands() async throws {
        let failed = await problem(.command(["sh", "-c", "echo hunter2; echo hunter2 >&2; exit 3"]))
        #expect(failed?.problem == "it ended with status 3")
        #expect(failed?.description.contains("hunter2") == false)
        #expect(await problem(.command(["sluice-no-such-program"]))?.problem.contains("cannot be started") == true)
        #expect(await problem(.command([])) != nil)
        #expect(await problem(.command(["sh", "-c", "kill -9 $$"]))?.problem == "it was ended by signal 9")
        #expect(await problem(.command(["head", "-c", "100000", "/dev/zero"]))?.problem.contains("more than") == true)
    }

    @Test("a command that does not end is killed, with all its children")
    func hangs() async throws {
        let hasty = SecretReader(variable: { $0 == "PATH" ? "/usr/bin:/bin" : nil }, timeout: .milliseconds(200))
        let marker = folder.path.appending("pid")
        let error = await problem(.command(["sh", "-c", "sleep 1000 & echo $! >'\(marker.display)'; wait"]), hasty)
        #expect(error?.problem == "it did not end in time")
        let pid = try #require(Int32(String(decoding: try read(marker), as: UTF8.self).filter(\.isNumber)))
        try await eventually("the grandchild has ended") { kill(pid, 0) == -1 || isZombie(pid) ? true : nil }
    }

    @Test("a command gets a small environment, no standard input, and default signals")
    func environment() async throws {
        let text = try await reader.read(.command(["sh", "-c", "env | cut -d= -f1 | sort; cat"])).reveal()
        let names = Set(text.split(separator: "\n").map(String.init))
        #expect(names.subtracting(["PWD", "SHLVL", "_", "OLDPWD"]) == ["PATH"])
    }

    @Test("a secret is not shown when printed")
    func hides() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), "\([secret])", "\(Optional(secret) as Any)", dumped] {
            #expect(!text.contains("hunter2"))
        }
    }

    private func read(_ path: FilePath) throws -> [UInt8] {
        var bytes: [UInt8] = []
        guard let file = fopen(path.display, "r") else { return [] }
        defer { fclose(file) }
        while case let byte = fgetc(file), byte != EOF { bytes.append(UInt8(byte)) }
        return bytes
    }

    /// A grandchild may have no parent that takes its exit status.
    private func isZombie(_ pid: Int32) -> Bool {
        guard let text = try? read(FilePath("/proc/\(pid)/stat")) else { return true }
        return text.isEmpty || String(decoding: text, as: UTF8.self).contains(") Z ")
    }
}
