import Core
import Linux
import TestKit
import Testing

/// `scripts/install-deps` with a Debian, a sudo and a Swift that are scripts: this machine is neither queried nor
/// changed.
@Suite("install-deps", .timeLimit(.minutes(Patience.minutes(1))))
struct InstallTests {
    /// The state of the machine.
    private struct Machine {
        /// Installed packages; those that apt installs are added.
        var installed: [String] = []
        /// The packages in the lists before the lists are fetched, and afterwards.
        var known: [String] = []
        var fetched: [String] = []
        /// Exit statuses of `apt-get install` before and after the lists were fetched.
        var statuses = (before: 0, after: 0)
        var swift = "echo 'Swift version 6.3.1 (swift-6.3.1-RELEASE)'"
    }

    private static let all = [
        "gcc", "binutils", "libc6-dev", "libstdc++-12-dev", "libncurses6", "libxml2", "libuuid1", "libedit2",
        "libpython3.11", "libz3-4", "tzdata", "pkg-config", "libcurl4-openssl-dev", "libmicrohttpd-dev",
        "libsqlite3-dev",
        "libssl-dev", "libyaml-dev", "libexpat1-dev", "zlib1g-dev", "libc-ares-dev", "ca-certificates",
    ]

    /// - Returns: How the script ended, its output, and the arguments of `apt-get`.
    private func run(_ machine: Machine) async throws -> (ending: Child.Ending, said: String, told: [String]) {
        let folder = TemporaryFolder()
        let at = folder.path.display
        func list(_ name: FilePath, _ names: [String]) throws {
            try folder.write(name, Array(names.map { $0 + "\n" }.joined().utf8))
        }
        try list("installed", machine.installed)
        try list("known", machine.known)
        try list("fetched", machine.fetched)
        try list("told", [])
        let programs: [(FilePath, String)] = [
            ("sudo", "exec \"$@\""), ("swift", machine.swift),
            ("dpkg-query", "sed 's/^/installed /' \(at)/installed"),
            (
                "apt-cache",
                """
                case "$1" in
                pkgnames) grep "^$2" \(at)/known; exit 0 ;;
                show) grep -qxF -- "$3" \(at)/known ;;
                esac
                """
            ),
            (
                "apt-get",
                """
                while [ "$1" = -o ]; do shift 2; done
                echo "$@" >>\(at)/told
                case "$1" in
                update) cat \(at)/fetched >>\(at)/known; touch \(at)/isFetched ;;
                install)
                    status=\(machine.statuses.before)
                    [ ! -e \(at)/isFetched ] || status=\(machine.statuses.after)
                    [ $status = 0 ] || { echo "E: 404 Not Found" >&2; exit $status; }
                    shift; for name in "$@"; do case "$name" in -*) ;; *) echo "$name" >>\(at)/installed ;; esac; done ;;
                esac
                """
            ),
        ]
        for (name, text) in programs { try folder.writeProgram(FilePath("bin").appending(name), text) }
        let script = Repository.root.appending("scripts/install-deps")
        let child = try Child(
            "/bin/bash", [script.display], environment: ["PATH": "\(at)/bin:/usr/bin:/bin"],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(20))
        let told = String(decoding: try Files.read(folder.path.appending("told")), as: UTF8.self)
        return (
            ending, try child.standardOutput() + child.standardError(), told.split(separator: "\n").map(String.init)
        )
    }

    @Test("apt is not called if everything is installed")
    func complete() async throws {
        let done = try await run(Machine(installed: Self.all))
        #expect(done.ending == .status(0) && done.told.isEmpty, "\(done)")
    }

    @Test(
        "package lists are fetched if missing, and dependencies are installed without removing any package")
    func bare() async throws {
        let done = try await run(
            Machine(fetched: Self.all + ["libstdc++-11-dev", "libpython3.9", "libpython3.11-minimal"]))
        #expect(done.ending == .status(0), "\(done)")
        #expect(done.told.first == "update -qq")
        let install = try #require(done.told.last).split(separator: " ").map(String.init)
        #expect(install.prefix(4) == ["install", "-y", "--no-install-recommends", "--no-remove"])
        #expect(install.dropFirst(4) == Self.all[...], "of packages with a version in the name the newest one")
        #expect(done.told.count == 2)
    }

    @Test(
        "existing package lists are kept if they suffice, and fetched once if outdated",
        arguments: [0, 100])
    func old(_ status: Int) async throws {
        let machine = Machine(
            installed: Self.all.filter { $0 != "libyaml-dev" }, known: Self.all, statuses: (before: status, after: 0))
        let done = try await run(machine)
        #expect(done.ending == .status(0), "\(done)")
        let install = "install -y --no-install-recommends --no-remove libyaml-dev"
        #expect(done.told == (status == 0 ? [install] : [install, "update -qq", install]))
        var ill = machine
        ill.statuses = (100, 100)
        let failed = try await run(ill)
        #expect(failed.ending == .status(1) && failed.said.contains("could not install: libyaml-dev"), "\(failed)")
    }

    @Test(
        "a missing optional library of the toolchain is skipped, and a missing build library is an error")
    func unknown() async throws {
        func without(_ name: String) -> Machine {
            Machine(installed: Self.all.filter { $0 != name }, known: Self.all.filter { $0 != name })
        }
        let left = try await run(without("libz3-4"))
        #expect(left.ending == .status(0) && left.said.contains("libz3-4: it is left out"), "\(left)")
        let failed = try await run(without("libyaml-dev"))
        #expect(failed.ending == .status(1) && failed.said.contains("apt knows no package libyaml-dev"), "\(failed)")
    }

    @Test("the reason why swift does not run is shown")
    func brokenSwift() async throws {
        let line = "swift: error while loading shared libraries: libncurses.so.6: cannot open shared object file"
        let done = try await run(Machine(installed: Self.all, swift: "echo '\(line)' >&2; exit 127"))
        #expect(done.ending == .status(1) && done.said.contains(line), "\(done)")
    }
}
