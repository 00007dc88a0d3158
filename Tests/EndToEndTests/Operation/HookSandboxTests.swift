import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

private enum Sandbox {
    static let isPossible =
        geteuid() == 0 && !Setting.isInstrumented && NetworkNamespace.isPossible
        && ["/usr/bin/python3", "/usr/bin/systemd-analyze", "/usr/bin/unshare"].allSatisfy {
            FileManager.default.isExecutableFile(atPath: $0)
        }
}

/// Hooks in the sandbox of the packaged unit, as far as that is possible without systemd: its mounts, capabilities and
/// system call filter, read from the unit itself.
@Suite(
    "Hooks in the unit's sandbox", .enabled(if: Sandbox.isPossible, "needs root, systemd-analyze and python3"),
    .timeLimit(.minutes(Patience.minutes(2))))
struct HookSandboxTests {
    /// Attempts of a program, by name, and whether the manual allows them.
    private static let tries: [(name: String, command: String, mayDo: Bool)] = [
        ("own-folder", "touch $OWN/new", true), ("private-tmp", "touch /tmp/new /var/tmp/new", true),
        ("pipes", "test $(echo 1 | cat) = 1", true), ("null", "echo > /dev/null", true),
        ("read-etc", "cat /etc/passwd", true), ("write-etc", "touch /etc/sluice-was-here", false),
        ("home", "ls /root", false), ("devices", "ls /dev/vda /dev/ttyUSB0 /dev/kmsg", false),
        ("kernel", "echo 0 > /sys/kernel/mm/ksm/run", false), ("chown", "chown 0:0 $OWN/new", false),
        ("set-uid", "chmod u+s $OWN/new", false), ("container", "unshare -U true", false),
        ("privileges", "grep -q 'NoNewPrivs:.*0' /proc/self/status", false),
        ("rights", "grep -Eq 'Cap(Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status", false),
        ("processes", "test -d /proc/1", false),
        ("just-in-time", "/usr/bin/python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'", false),
        ("bluetooth", "/usr/bin/python3 -c 'import socket; socket.socket(31, 3, 1)'", false),
        ("unix", "/usr/bin/python3 -c 'import socket; socket.socket(1, 1)'", true),
    ]

    @Test("programs and addresses are notified, and a program may do what the manual permits and no more")
    func unit() async throws {
        let scene = try HookFixture.Scene()
        let web = try HookFixture.Web()
        let root = Repository.root
        let folder = scene.fixture.folder.path
        let lines = Self.tries.map { one in
            "if ( \(one.command) ) > /dev/null 2>&1; then echo \(one.name) may; else echo \(one.name) may not; fi"
        }
        let probe = try scene.script(
            "probe",
            "OWN=\(folder.display)\ncat > /dev/null\n( \(lines.joined(separator: "\n")) ) > \(scene.out.display).new\n"
                + "mv \(scene.out.display).new \(scene.out.display)")
        let ask = try scene.script(
            "ask", "cat > /dev/null; echo '{\"answer\":\"go\",\"name\":\"asked.mp4\"}'")
        let hang = try scene.script("hang", "sleep 1000 & wait")
        scene.fixture.policyKeys = ["before_upload: {command: [\(ask.display)]}"]
        scene.fixture.topKeys = [
            "hooks:", "  - {name: probe, command: [\(probe.display)]}", "  - {name: web, url: \"\(web.url)\"}",
            "  - {name: hang, command: [\(hang.display)], timeout: 300ms, retry: {first: 1h, max: 1h}}",
        ]
        try scene.fixture.startDaemon(
            // The sandbox may hide the directory where the program was built.
            inMounts: """
                cp "$1" \(folder.display)/sluice
                shift
                set -- /usr/bin/python3 \(root.display)/Tests/Fixtures/sandbox.py \
                    \(root.display)/packaging/systemd/sluice.service \(folder.display) -- \(folder.display)/sluice "$@"
                """)
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await scene.arrives("asked.mp4")
        try await eventually("the address has been notified") { try web.events.map(\.type) == ["completed"] }
        try await eventually("the hanging command has been killed") {
            try await scene.hooks().contains { $0.hold?.text.contains("did not end within") == true }
        }
        let said = try await eventually("the program has been notified") {
            guard let bytes = try? Files.read(scene.out, limit: 1 << 20) else { return nil as [Substring]? }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        }
        #expect(said == Self.tries.map { Substring($0.name + ($0.mayDo ? " may" : " may not")) })
        // By hand, the daemon runs it, in the sandbox.
        try Files.removeIfPresent(scene.out)
        #expect(try await scene.fixture.runVerb("hook", ["probe"]) != nil)
        #expect(String(decoding: try Files.read(scene.out), as: UTF8.self).contains("write-etc may not"))
    }
}
