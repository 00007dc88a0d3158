import Core
import Glibc
import Linux

/// Settings of the tests in the environment.
enum Setting {
    /// SIGKILLs over all variants of the crash test; `make crash KILLS=1000` sets it.
    static var kills: Int { number("SLUICE_KILLS") ?? 50 }

    /// Power cuts at random moments, over all variants of the cut test; `make crash CUTS=200` sets it.
    static var cuts: Int { number("SLUICE_CUTS") ?? 12 }
    /// Scenes of two links and a tunnel; `make test-full` and `make test-long` have more.
    static var scenes: Int { number("SLUICE_SCENES") ?? 10 }
    /// The only kind of destination for a campaign; `make campaign KIND=form` sets it.
    static var kind: String? { text("SLUICE_KIND") }
    /// Whether every combination is tested, and not only enough of them to cover each part.
    static var isThorough: Bool { text("SLOW_TESTS") != nil }

    /// Whether the program contains a sanitizer: set by `scripts/sanitize`.
    static var isInstrumented: Bool { text("SLUICE_SANITIZER") != nil }

    /// The seed of all random numbers of a test; a failure names it, so that the test can be repeated.
    static var seed: UInt64 {
        number("SLUICE_SEED").map { UInt64($0) } ?? Random.bytes(4).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The program under test: `SLUICE_BINARY`, else the one that was built beside this test.
    ///
    /// - Throws: ``NoBinary`` when there is none: these tests fail then, and are not skipped.
    static func binary() throws -> FilePath {
        if let given = text("SLUICE_BINARY") { return FilePath(given) }
        let beside = runner().parent.appending("sluice")
        guard try FileStatus.ifPresent(at: beside) != nil else { throw NoBinary(place: beside) }
        return beside
    }

    /// The program that runs these tests.
    static func runner() -> FilePath {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
        }
        return FilePath(bytes: buffer.prefix(max(0, count)))
    }

    /// Where a test that will be killed lists the things it leaves behind.
    static var orphanage: FilePath? { text("SLUICE_TEST_ORPHANAGE").map { FilePath($0) } }

    struct NoBinary: Error, CustomStringConvertible {
        let place: FilePath
        var description: String {
            "no program at \(place): run `swift build --build-tests`, or name one in SLUICE_BINARY"
        }
    }

    /// An empty variable counts as none, so that a caller can unset one.
    private static func text(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    private static func number(_ name: String) -> Int? { text(name).flatMap { Int($0) } }
}
