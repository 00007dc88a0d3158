import Core
import Linux
import TestKit
import Testing

/// The behaviours that a client of tus should show against every server, each with the tests that show it. A test that
/// is renamed has to be renamed here.
@Suite("tus: the checks that every client should pass")
struct TusChecksTests {
    struct Check: CustomTestStringConvertible, Sendable {
        let number: Int
        let what: String
        /// `File.function`, by the name of the file without `.swift`.
        let tests: [String]
        var testDescription: String { "\(number). \(what)" }
    }

    static let checks = [
        Check(
            number: 1, what: "every size arrives, without an empty PATCH at the end",
            tests: ["TusEndToEndTests.sizes", "TusEvidenceTests.empty"]),
        Check(
            number: 2, what: "after a cut only HEAD and PATCH follow",
            tests: ["TusEndToEndTests.cuts", "TusConcatenationTests.cut"]),
        Check(
            number: 3, what: "a lost answer to PATCH sends no byte twice; one to POST leaves an orphan that is counted",
            tests: [
                "TusEndToEndTests.lostAcknowledgements", "TusEndToEndTests.lostCreation", "TusLastAnswerTests.lost",
                "TusConcatenationTests.lostJoin",
            ]),
        Check(
            number: 4, what: "SIGKILL at random points: every file once and whole",
            tests: [
                "TusEndToEndTests.killed", "TusConcatenationTests.dies", "ThirdPartyTusTests.server",
                "CrashTests.survives", "SectionCrashTests.survives",
            ]),
        Check(
            number: 5, what: "404 or 410 to HEAD, with half of the bytes sent and with all",
            tests: [
                "TusEndToEndTests.goneHalfWay", "TusEvidenceTests.goneAtTheEnd", "TusEndingsTests.unknownOutcome",
                "TusExpiryTests.expired",
            ]),
        Check(
            number: 6, what: "a server in trouble keeps its upload, and its waits are obeyed",
            tests: ["TusEndToEndTests.trouble", "TusVerdictTests.waits"]),
        Check(
            number: 7, what: "409 at another offset continues there; at ours it is a lock",
            tests: ["TusFakeTests.conflicts", "TusWrongOffsetTests.lockEnds"]),
        Check(
            number: 8, what: "413 makes requests smaller, and is remembered; a file above the maximum is not created",
            tests: ["TusEndToEndTests.shrinks", "TusEndToEndTests.tooLarge", "TusPathTests.cutBodies"]),
        Check(
            number: 9, what: "460 is sent again, and does not loop", tests: ["TusEndToEndTests.damage"]),
        Check(
            number: 10, what: "204 without growth, without an offset, behind the start, beyond the sent bytes",
            tests: [
                "TusFakeTests.noProgress", "TusFakeTests.unnamedOffset", "TusFakeTests.partial",
                "TusWrongOffsetTests.noGrowth",
            ]),
        Check(
            number: 11, what: "a file that changes during its upload is never mixed",
            tests: [
                "TusEndingsTests.changed", "TusEndingsTests.truncated", "TusEndingsTests.rotten",
                "TusEndingsTests.rottenBetween", "TusConcatenationTests.rotten",
            ]),
        Check(
            number: 12, what: "a peer that stops reading or never answers is noticed",
            tests: ["TusEndingsTests.stalls", "TusEndingsTests.slowAnswers"]),
        Check(
            number: 13, what: "addresses in every form; credentials never leave the origin",
            tests: [
                "AddressTests.exact", "AddressTests.elsewhere", "AddressTests.mended", "TusOriginTests.refused",
                "TusOriginTests.same",
                "TusOriginTests.encrypted", "TusOriginTests.redirected",
            ]),
        Check(
            number: 14, what: "two processes with the same record: one of them waits", tests: ["StartStopTests.alone"]),
        Check(
            number: 15, what: "metadata of every kind arrives unchanged, and the header stays short",
            tests: ["TusEndToEndTests.metadata", "TusMetadataTests.cap", "TusFakeTests.lessMetadata"]),
        Check(
            number: 16, what: "a new token continues at the old offset; 403 on a finished upload is success",
            tests: ["TusFakeTests.newToken", "TusVerdictTests.follows", "TusWrongOffsetTests.lateDelivery"]),
        Check(
            number: 17, what: "only announced extensions are used",
            tests: ["TusConcatenationTests.single", "TusEndToEndTests.checksums", "TusAnnouncedTests.onlyAnnounced"]),
        Check(
            number: 18, what: "a cancel removes the upload once; a server without removal is no error",
            tests: ["TusEndToEndTests.removes", "TusVerdictTests.follows", "TusConcatenationTests.discard"]),
    ]

    /// Check 19, of the memory for files of a GiB, is the mark `daemon/memory` of the benchmarks. Check 20 is about the
    /// protocol of the IETF.
    @Test("each check has a test", arguments: checks)
    func isThere(_ check: Check) throws {
        #expect(!check.tests.isEmpty)
        for test in check.tests {
            let words = test.split(separator: ".").map(String.init)
            let text = try #require(Self.sources[words[0] + ".swift"], "\(test)")
            #expect(text.contains("func \(words[1])("), "\(test)")
        }
    }

    /// The texts of the test files that the table names, by their names.
    private static let sources: [String: String] = {
        let wanted = Set(checks.flatMap(\.tests).map { $0.prefix { $0 != "." } + ".swift" }.map(String.init))
        var found: [String: String] = [:]
        func search(_ folder: FilePath) {
            for name in (try? Files.names(in: folder)) ?? [] {
                let path = folder.appending(name)
                if wanted.contains(name.display) {
                    // Two suites of different modules may have one name.
                    let text = (try? Files.read(path, limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
                    found[name.display, default: ""] += text ?? ""
                } else if !name.display.contains(".") {
                    search(path)
                }
            }
        }
        search(Repository.root.appending("Tests"))
        return found
    }()
}
