import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@Suite("Log")
struct LogTests {
    final class Lines: Sendable {
        private let kept = Mutex<[String]>([])
        var all: [String] { kept.withLock { $0 } }
        func add(_ bytes: [UInt8]) { kept.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }
    }

    func line(_ format: Log.Format, _ write: (Log) -> Void) -> String {
        let lines = Lines()
        write(Log(level: .info, format: format, clocks: ManualClocks(), journal: "/nowhere") { lines.add($0) })
        return lines.all.joined()
    }

    @Test(
        "each format has one fact a line",
        arguments: [
            (Log.Format.journal, "<4>held destination=nas reason=\"no route\" size=12\n"),
            (.plain, "2026-11-20T08:00:00.000Z warning held destination=nas reason=\"no route\" size=12\n"),
            (
                .json,
                #"{"ts":"2026-11-20T08:00:00.000Z","level":"warning","event":"held","destination":"nas","#
                    + #""reason":"no route","size":"12"}"# + "\n"
            ),
        ])
    func formats(_ format: Log.Format, _ expected: String) {
        let written = line(format) {
            $0.warning("held", ["destination": "nas", "key": nil, "reason": "no route", "size": "\(12)"])
        }
        #expect(written == expected)
    }

    @Test("journald gets each field separately, with its length if it contains a newline")
    func journal() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("journal")
        let journald = Supervisor(path)
        let lines = Lines()
        let log = Log(format: .journal, clocks: ManualClocks(), journal: path) { lines.add($0) }
        log.warning("held", ["destination": "nas", "next-try": "a\nb", "token": "Zq7canary"])
        #expect(
            journald.next()
                == "MESSAGE=held destination=nas next-try=a\\x0ab token=***\nPRIORITY=4\nSYSLOG_IDENTIFIER=sluice\n"
                + "SLUICE_EVENT=held\nSLUICE_DESTINATION=nas\nSLUICE_NEXT_TRY\n\u{3}\0\0\0\0\0\0\0a\nb\nSLUICE_TOKEN=***\n"
        )
        #expect(lines.all.isEmpty)
        // An entry that is too large for a datagram, or without a listener, becomes a line as before.
        log.info("long", ["text": String(repeating: "x", count: 1 << 20)])
        try Files.remove(path)
        log.info("alone")
        #expect(lines.all.map { $0.prefix(8) } == ["<6>long ", "<6>alone"])
    }

    @Test("a terminal shows local time, and the level only if notable")
    func terminal() {
        let clock = LocalTime(ManualClocks().wall()).clock
        #expect(
            line(.terminal(colour: false)) { $0.info("uploaded", ["name": "a.mp4"]) }
                == "\(clock) uploaded name=a.mp4\n")
        #expect(line(.terminal(colour: false)) { $0.error("gone") } == "\(clock) error gone\n")
        #expect(line(.terminal(colour: true)) { $0.error("gone") }.contains("\u{1B}[31merror"))
    }

    @Test("no name breaks a line or colours a terminal")
    func control() {
        #expect(line(.journal) { $0.info("seen", ["name": "a\nb\u{1B}"]) } == "<6>seen name=a\\x0ab\\x1b\n")
        #expect(line(.json) { $0.info("seen", ["name": "a\u{9B}\"\\"]) }.contains(#""name":"a\u009b\"\\""#))
    }

    @Test("values with an invisible end are quoted")
    func quotes() {
        #expect(
            line(.journal) { $0.info("e", ["a": "", "b": "x=y", "c": "say \"hi\""]) }
                == #"<6>e a="" b="x=y" c="say \"hi\"""# + "\n")
    }

    @Test("secrets are never shown, by name or by form")
    func secrets() {
        let written = line(.json) {
            $0.info("asked", ["token": "abc", "url": "https://a:b@h/?sig=xyz", "key": "cam/1"])
        }
        #expect(written.contains(#""token":"***","url":"https://***@h/?sig=***","key":"cam/1""#))
    }

    @Test("messages below the level are not even built")
    func level() {
        func fields() -> Log.Fields {
            Issue.record("the fields of the message were built")
            return [:]
        }
        let written = line(.plain) { $0.debug("detail", fields()) }
        #expect(written.isEmpty)
    }
}
