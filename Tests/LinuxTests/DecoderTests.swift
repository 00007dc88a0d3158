import Core
import Glibc
import TestKit
import TestTraits
import Testing

@testable import Linux

/// Perl without modules is the program: it opens no files but itself and libraries, and calls the kernel by number.
@Suite(
    "Programs that decode one file", .ownThreads,
    .enabled(if: Confinement.Support.here.holdsDecoders, "needs Landlock (Linux 5.13) and seccomp"))
struct DecoderTests {
    private static let perl: FilePath = "/usr/bin/perl"
    private let folder = TemporaryFolder()
    private let decoder = Confinement.Decoder(memory: 256 << 20, processorTime: .seconds(10))

    /// Runs statements with a limit. They are in the file that is lent: Perl reads no other one.
    private func run(_ statements: String, confined: Bool = true) throws -> String {
        try lending(statements) { number in
            let output = try program(number, confined ? Confinement(decoder) : nil).collectOutput(
                atMost: 1 << 16, within: .seconds(300))
            return String(decoding: output, as: UTF8.self)
        }
    }

    private func program(_ file: CInt, _ confinement: Confinement?) -> Program {
        Program(
            words: [Self.perl.display, "/proc/self/fd/\(file)"].map { Array($0.utf8) }, environment: [], folder: "/",
            passedDescriptor: file, confinement: confinement)
    }

    private func lending<R>(_ statements: String, _ body: (CInt) throws -> R) throws -> R {
        let file = try Descriptor.open(try folder.write("lent", Array(statements.utf8)), for: .reading)
        return try file.withNumber { number throws(any Error) in try body(number) }
    }

    /// Each with its name, whether any program may do it, and the error that the sandbox answers it with.
    private static let attempts: [(name: String, isUsual: Bool, statement: String, refusal: CInt?)] = [
        ("lent", true, #"open(F, "<", $file) && <F> =~ /attempt/"#, nil),
        ("passwd", true, #"open(F, "<", "/etc/passwd")"#, EACCES),
        ("own folder", true, #"opendir(D, "/usr/lib")"#, EACCES),
        ("other program", true, #"open(F, "<", "/usr/bin/env")"#, EACCES),
        ("write", true, #"open(F, ">", "$folder/written")"#, EACCES),
        ("write lent", true, #"open(F, "+<", $file)"#, EACCES),
        ("make folder", true, #"mkdir("$folder/made")"#, ENOSYS),
        ("remove", true, #"unlink("$folder/lent")"#, ENOSYS),
        ("tcp", true, "socket(S, 2, 1, 0)", ENOSYS), ("udp", true, "socket(S, 2, 2, 0)", ENOSYS),
        ("unix", true, "socket(S, 1, 1, 0)", ENOSYS), ("fork", false, "defined fork()", EPERM),
        ("signal", true, "kill(0, getppid()) == 1", ENOSYS),
        ("io_uring", false, "syscall(425, 1, 0) >= 0", ENOSYS),
        ("pidfd", true, "syscall(434, $$ + 0, 0) >= 0", ENOSYS),
        ("flags", true, "fcntl(L, 1, 0) && fcntl(L, 2, 1) && fcntl(L, 3, 0)", nil),
        ("copy", true, "fcntl(L, 0, 20) && fcntl(L, 1030, 20)", nil),
        // F_SETOWN, F_SETSIG to SIGKILL, F_SETFL with O_ASYNC, F_SETLEASE.
        ("owner of signals", true, "fcntl(L, 8, $$ + 0)", EINVAL), ("kind of signal", true, "fcntl(L, 10, 9)", EINVAL),
        ("signals for data", true, "fcntl(L, 4, 020000)", EINVAL), ("lease", false, "fcntl(L, 1024, 0)", EINVAL),
        ("private memory", true, "\(mapping(0x22)) != -1", nil),
        ("shared memory", true, "\(mapping(0x21)) != -1", EPERM),
        ("validated shared memory", false, "\(mapping(0x23)) != -1", EPERM),
        ("growing memory", true, "\(mapping(0x122)) != -1", EPERM),
        ("execute", false, #"exec { "/bin/true" } "true""#, EACCES),
    ]

    #if arch(x86_64)
        private static let (readCall, mmapCall, mprotectCall) = (0, 9, 10)
    #else
        private static let (readCall, mmapCall, mprotectCall) = (63, 222, 226)
    #endif

    /// mmap(2) of 4 KiB that can be written to, with these flags.
    private static func mapping(_ flags: Int) -> String { "syscall(\(mmapCall), 0, 4096, 3, \(flags), -1, 0)" }

    private func statements(_ attempts: [(name: String, isUsual: Bool, statement: String, refusal: CInt?)]) -> String {
        "sub attempt { my ($name, $done) = @_; print \"$name \", $done ? 'done' : $! + 0, \"\\n\" }\n"
            + "$| = 1; my $file = $0; my $folder = '\(folder.path.display)'; open(L, '<', $file);\n"
            + attempts.map { "attempt('\($0.name)', \($0.statement));\n" }.joined()
    }

    @Test("it reads the lent file, and nothing else; it writes, connects, starts and signals nothing")
    func refused() throws {
        let words = try run(statements(Self.attempts)).split(separator: "\n").map(String.init)
        #expect(words == Self.attempts.map { "\($0.name) \($0.refusal.map { "\($0)" } ?? "done")" })
        #expect(try FileStatus.ifPresent(at: folder.path.appending("lent")) != nil)
    }

    @Test("without its sandbox the same program does all that")
    func possible() throws {
        let usual = Self.attempts.filter(\.isUsual)
        let words = try run(statements(usual), confined: false).split(separator: "\n").map(String.init)
        #expect(words == usual.map { "\($0.name) done" })
    }

    @Test("it ends when it takes too much memory, or too much of a processor")
    func limits() throws {
        #expect(try run("my $x = 'x'; vec($x, 100 << 20, 8) = 1; print 'enough';") == "enough")
        #expect(throws: Program.Problem.self) {
            try run("my $x = 'x'; vec($x, 300 << 20, 8) = 1; print 'enough';")
        }
        let short = Confinement(Confinement.Decoder(memory: 256 << 20, processorTime: .seconds(1)))
        let ending = try lending("1 while 1") { number in
            Result { () throws(Program.Problem) in
                try program(number, short).collectOutput(atMost: 1, within: .seconds(600))
            }
        }
        guard case .failure(let problem) = ending else {
            Issue.record("it ended by itself")
            return
        }
        #expect(problem.ending == .signal(SIGKILL))
    }

    /// Take pieces of 16 MiB in ways that the limit of allocated memory alone does not stop, and print how many were
    /// written to.
    private static let waysAroundAllocation = [
        "reserved first, and made writable together":
            "while (@p < 200 && ($p = take(0)) != -1) { push @p, $p } for (@p) { $n++ if protect($_, 3) && fill($_) }",
        "written to, and then made read-only":
            "while ($n < 200 && ($p = take(3)) != -1 && fill($p) && protect($p, 1)) { $n++ }",
    ]

    @Test(
        "memory is limited also for a program that changes the protection of its pages",
        arguments: waysAroundAllocation.keys.sorted())
    func protectionChanges(_ way: String) throws {
        let size = 16 << 20
        let steps = try #require(Self.waysAroundAllocation[way])
        let output = try run(
            """
            my ($n, $p, @p) = (0); open(L, '<', $0); my $file = fileno(L);
            sub take { syscall(\(Self.mmapCall), 0, \(size), $_[0], 0x22, -1, 0) }
            sub protect { syscall(\(Self.mprotectCall), $_[0], \(size), $_[1]) == 0 }
            sub fill { sysseek(L, 0, 0); syscall(\(Self.readCall), $file, $_[0], 16) == 16 }
            \(steps)
            print $n;
            """)
        let pieces = try #require(Int(output))
        #expect(pieces > 0)
        #expect(pieces * size <= 640 << 20)
    }

    @Test("it starts however many descriptors this process has")
    func manyDescriptors() throws {
        var open: [CInt] = []
        defer { for number in open { close(number) } }
        for _ in 0..<200 { open.append(dup(0)) }
        #expect((open.max() ?? 0) >= 200)
        #expect(try run("print 'started'") == "started")
    }

    /// What the kernel shows of a running program, from outside.
    private struct Seen {
        var status = "", statistics: [Substring] = [], environment: [UInt8] = []
        var descriptors: Set<FilePath> = []
    }

    @Test("it has the lowest priority, no rights, no environment and no other descriptors")
    func state() throws {
        var seen = Seen()
        let number = try lending("$| = 1; print \"$$\\n\"; sleep 60") { number in
            var isDone = false
            _ = try program(number, Confinement(decoder)).run(
                within: .seconds(30),
                line: { text, _ in
                    isDone = true
                    let place = FilePath("/proc/\(text)")
                    func read(_ name: FilePath) -> [UInt8] { (try? Files.read(place.appending(name))) ?? [] }
                    seen.status = String(decoding: read("status"), as: UTF8.self)
                    seen.statistics = String(decoding: read("stat"), as: UTF8.self).split(separator: " ")
                    seen.environment = read("environ")
                    seen.descriptors = Set((try? Files.names(in: place.appending("fd"))) ?? [])
                }, isStopped: { isDone })
            return number
        }
        // proc(5): the 19th is the nice value, the 41st the policy; 5 is SCHED_IDLE.
        try #require(seen.statistics.count > 41)
        #expect(seen.statistics[18] == "19" && seen.statistics[40] == "5")
        #expect(seen.environment.isEmpty)
        // Perl has opened the lent file a second time.
        let own: Set<FilePath> = ["0", "1", "2", FilePath("\(number)")]
        #expect(seen.descriptors.isSuperset(of: own) && seen.descriptors.count <= own.count + 1)
        #expect(seen.status.contains(/NoNewPrivs:\t1\n/) && seen.status.contains(/Seccomp:\t2\n/))
        // CAP_DAC_READ_SEARCH alone, for root; none for other users.
        #expect(seen.status.contains(/CapEff:\t000000000000000[04]\n/))
    }
}
