internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// Ceph's object gateway from Debian's packages: a monitor, a store in memory, and gateways that speak S3.
///
/// Nothing is installed, and all of it is on loopback. Its processes are children, which the kernel ends with this one.
package final class Ceph: Sendable {
    /// It needs a download of 60 MB, and seconds to start: only `make test-long` uses it.
    package static let isWanted = getenv("SLOW_TESTS") != nil
    /// One for the whole run; tests are separated by their buckets.
    package static let shared = Task.detached {
        let ceph = try await blocking { try Ceph() }
        try await ceph.start()
        return ceph
    }
    /// The gateway that most tests use.
    package static let gateway = Task.detached { try await shared.value.gateway() }
    /// A request whose host has a bucket's name before this one is for that bucket.
    package static let host = "s3.localhost"
    /// The user whose key is ``S3Server/id``.
    package static let user = "sluice"

    /// One gateway. All of them serve the same buckets.
    package final class Gateway: Sendable {
        package let port: Int
        package var url: String { "http://127.0.0.1:\(port)" }
        private let child: Child
        private let clock: FilePath

        fileprivate init(port: Int, child: Child, clock: FilePath) {
            (self.port, self.child, self.clock) = (port, child, clock)
        }

        /// Sets its clock ahead of ours from now on; only for a gateway that was started with its own clock.
        package func setClock(ahead hours: Int) throws { try Files.replace(clock, with: Array("+\(hours)h\n".utf8)) }
        package func stop() { _ = child.end(with: SIGKILL) }
    }

    private let programs: FilePath
    private let environment: [String: String]
    private let clockFaker: FilePath
    private let configuration: FilePath
    private let monitor: Int
    private let id: String
    private let temporary = TemporaryFolder()
    private let daemons = Mutex<[Child]>([])
    private let count = Mutex(0)

    struct Unusable: Error, CustomStringConvertible { let description: String }

    private init() throws {
        let root = try Tools.debian("ceph")
        programs = root.appending("usr/bin")
        let libraries = Tools.libraries(of: root)
        guard let own = try libraries.first(where: { try FileStatus.ifPresent(at: $0.appending("ceph")) != nil }) else {
            throw Unusable(description: "Ceph's packages hold no libraries for this machine")
        }
        environment = [
            "LD_LIBRARY_PATH": (libraries + [own.appending("ceph")]).map(\.display).joined(separator: ":"),
            "PYTHONPATH": root.appending("usr/lib/python3/dist-packages").display, "PYTHONDONTWRITEBYTECODE": "1",
        ]
        clockFaker = own.appending("faketime/libfaketimeMT.so.1")
        monitor = try Loopback.freePort()
        id = try Self.uuid()
        for name in ["mon", "osd"] as [FilePath] { try Files.makeFolders(temporary.path.appending(name)) }
        try temporary.write("keyring", [])
        let settings = Self.settings(temporary.path, own, monitor: monitor, id: id)
        configuration = try temporary.write("ceph.conf", Array(settings.utf8))
    }

    /// Without authentication between its own parts; objects are in one place and in memory. Proposals are made at
    /// once, so that it starts in five seconds and not in fifteen. Gateways do not notify each other of invalid cache
    /// entries: that would wait half a minute for one that was killed. A day of a lifecycle rule is two seconds, and
    /// parts may be as small as the contract suite has them.
    private static func settings(_ folder: FilePath, _ libraries: FilePath, monitor: Int, id: String) -> String {
        """
        [global]
        fsid = \(id)
        mon_host = [v1:127.0.0.1:\(monitor)]
        monmap = \(folder.display)/monmap
        auth_cluster_required = none
        auth_service_required = none
        auth_client_required = none
        osd_pool_default_size = 1
        osd_pool_default_min_size = 1
        osd_pool_default_pg_num = 1
        osd_pool_default_pgp_num = 1
        osd_pool_default_pg_autoscale_mode = off
        mon_allow_pool_size_one = true
        mon_max_pg_per_osd = 2000
        osd_crush_chooseleaf_type = 0
        osd_objectstore = memstore
        memstore_device_bytes = 8589934592
        paxos_propose_interval = 0.05
        paxos_min_wait = 0.01
        ms_bind_ipv6 = false
        public_addr = 127.0.0.1
        cluster_addr = 127.0.0.1
        mon_data = \(folder.display)/mon
        osd_data = \(folder.display)/osd
        keyring = \(folder.display)/keyring
        log_file = \(folder.display)/$name.log
        mon_cluster_log_file = \(folder.display)/cluster.log
        pid_file =
        admin_socket =
        plugin_dir = \(libraries.display)/ceph
        erasure_code_dir = \(libraries.display)/ceph/erasure-code
        osd_class_dir = \(libraries.display)/rados-classes
        [client]
        rgw_dns_name = \(host)
        rgw_sts_key = abcdefghijklmnop
        rgw_s3_auth_use_sts = true
        rgw_cache_enabled = false
        rgw_lc_debug_interval = 2
        rgw_multipart_min_part_size = 1
        rgw_gc_obj_min_wait = 1
        rgw_gc_processor_period = 5
        rgw_gc_processor_max_time = 5

        """
    }

    private func start() async throws {
        // In this form: a program that reads a bare address waits for ever.
        let map = temporary.path.appending("monmap").display
        try await run("monmaptool", ["--create", "--addv", "a", "[v1:127.0.0.1:\(monitor)]", "--fsid", id, map])
        try await run("ceph-mon", ["--mkfs", "-i", "a", "--monmap", map] + settings)
        try keep(launch("ceph-mon", ["-f", "-i", "a"] + settings))
        let store = try Self.uuid()
        try await eventually("the monitor knows the store", within: .seconds(30), every: .milliseconds(100)) {
            try await ceph("osd", "new", store)
        }
        try await run("ceph-osd", ["-i", "0", "--mkfs", "--osd-uuid", store] + settings)
        var keeper = try launch("ceph-osd", ["-f", "-i", "0"] + settings)
        // A request for a pool before the store is up waits for ever.
        try await eventually("the store is up", within: .seconds(60), every: .milliseconds(100)) {
            if keeper.ended != nil { keeper = try launch("ceph-osd", ["-f", "-i", "0"] + settings) }
            return try await ceph("osd", "stat")?.contains("1 up")
        }
        keep(keeper)
        _ = try await admin([
            "user", "create", "--uid=\(Self.user)", "--display-name=Sluice", "--access-key=\(S3Server.id)",
            "--secret=\(S3Server.secretKey)",
        ])
    }

    /// The monitor's answer; `nil` when it refused. Without a local copy of the map, a client that asked before the map
    /// had come from the monitor was refused (`wrong fsid`), the store too: seen with 16.2.15, one time in five on a
    /// busy machine.
    private func ceph(_ words: String...) async throws -> String? {
        do { return try await run("ceph", settings + words) } catch is Child.Ended { return nil }
    }

    /// Starts one more gateway.
    ///
    /// - Parameter hasOwnClock: Whether its clock may be set, with ``Gateway/setClock(ahead:)``.
    package func gateway(hasOwnClock: Bool = false) async throws -> Gateway {
        let port = try Loopback.freePort()
        let name = "client.rgw.\(number())"
        let clock = try temporary.write(FilePath("\(name).clock"), Array("+0\n".utf8))
        var more: [String: String] = [:]
        if hasOwnClock {
            // The monotonic clock is not changed: it wakes waiting threads.
            more = [
                "LD_PRELOAD": clockFaker.display, "FAKETIME_TIMESTAMP_FILE": clock.display, "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
            ]
        }
        let child = try launch(
            "radosgw", ["-f", "-n", name, "--rgw-frontends=beast endpoint=127.0.0.1:\(port)"] + settings, more)
        try await eventually("a gateway listens", within: .seconds(60), every: .milliseconds(50)) {
            try child.requireRunning()
            return Loopback.answers(port)
        }
        return Gateway(port: port, child: child, clock: clock)
    }

    /// The output of `radosgw-admin`.
    package func admin(_ words: [String]) async throws -> String { try await run("radosgw-admin", settings + words) }

    private var settings: [String] { ["-c", configuration.display] }
    private func number() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }

    private func keep(_ child: Child) { daemons.withLock { $0.append(child) } }

    private func launch(_ name: String, _ words: [String], _ more: [String: String] = [:]) throws -> Child {
        let out = temporary.path.appending(FilePath("\(number())-\(name)"))
        let program = programs.appending(FilePath(name))
        // Debian's own Python, which its modules are for.
        let isScript = name == "ceph"
        return try Child(
            isScript ? "/usr/bin/python3" : program, (isScript ? [program.display] : []) + words,
            environment: environment.merging(more) { $1 }, output: FilePath(out.display + ".out"),
            errors: FilePath(out.display + ".err"))
    }

    /// The output of a program that ends by itself.
    @discardableResult
    private func run(_ name: String, _ words: [String]) async throws -> String {
        try await blocking {
            let child = try self.launch(name, words)
            let ending = child.wait()
            guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
            return try child.standardOutput()
        }
    }

    private static func uuid() throws -> String {
        let line = try Files.read("/proc/sys/kernel/random/uuid", limit: 100)
        return String(decoding: line.dropLast(), as: UTF8.self)
    }
}
