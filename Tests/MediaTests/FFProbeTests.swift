import Core
import Linux
import TestKit
import Testing

@testable import Media

/// A program with this name replaces it: the output of the real one is in the first test.
@Suite("FFProbe")
struct FFProbeTests {
    @Test("ffprobe's output is parsed")
    func reads() {
        // The output of ffprobe 5.1 for a finished transport stream, with a time added.
        let facts = FFProbe.facts(
            from: Array(
                """
                {"programs": [], "streams": [{"codec_type": "audio"}, {"codec_type": "video", "width": 64, "height": 48}],
                "format": {"duration": "1.040000", "tags": {"creation_time": "2024-05-01T10:20:30.000000Z"}}}
                """.utf8))
        #expect(
            facts
                == MediaFacts(
                    recorded: WallTime(milliseconds: 1_714_558_830_000), duration: 1040, width: 64, height: 48))
    }

    @Test(
        "invalid output gives no facts",
        arguments: [
            "", "{", "[]", "{}", #"{"format": {"duration": "NaN"}}"#, #"{"format": {"duration": "1e300"}}"#,
            #"{"streams": [{"codec_type": "video", "width": -5, "height": 9223372036854775807}]}"#,
            #"{"streams": [{"codec_type": "video", "width": 0, "height": 0}], "format": {"duration": "0.04"}}"#,
            String(repeating: "[", count: 600),
        ])
    func nothing(_ text: String) { #expect(FFProbe.facts(from: Array(text.utf8)).isEmpty) }

    @Test("ffprobe is found in PATH, and otherwise not used")
    func found() throws {
        let folder = TemporaryFolder()
        #expect(FFProbe.installed(path: "/nowhere:relative:\(folder.path)") == nil)
        let probe = try fake(folder, "exit 0")
        #expect(FFProbe.installed(path: "/nowhere:\(folder.path)") != nil)
        #expect(probe.facts(of: try file(folder)).isEmpty)
    }

    private func file(_ folder: TemporaryFolder) throws -> Descriptor {
        try Descriptor.open(try folder.write("recording", [7]), for: .reading)
    }

    @Test("ffprobe gets the open file, and may open only files")
    func asked() throws {
        let folder = TemporaryFolder()
        let probe = try fake(
            folder,
            #"printf '%s\n' "$@" > \#(folder.path)/words; for last; do :; done; cat "${last#file:}" > \#(folder.path)/read; echo '{"format":{"duration":"2"}}'"#
        )
        #expect(probe.facts(of: try file(folder)).duration == 2000)
        let words = String(decoding: try Files.read(folder.path.appending("words")), as: UTF8.self)
        #expect(words.contains("\n-protocol_whitelist\nfile\n"))
        #expect(try Files.read(folder.path.appending("read")) == [7])
    }

    @Test(
        "a probe that fails, prints too much or hangs gives no facts, and leaves no process",
        arguments: [
            "exit 1", "yes", "echo $$ > PID; exec sleep 600",
        ])
    func fails(_ script: String) throws {
        let folder = TemporaryFolder()
        let pid = folder.path.appending("pid")
        let probe = try fake(
            folder, script == "yes" ? script : "\(script)".replacing("PID", with: pid.display),
            timeout: script == "yes" ? .seconds(60) : .milliseconds(300))
        #expect(probe.facts(of: try file(folder)).isEmpty)
        if let number = try? Files.read(pid) {
            let text = String(decoding: number.filter { $0 != 10 }, as: UTF8.self)
            #expect(try FileStatus.ifPresent(at: FilePath("/proc/" + text)) == nil)
        }
    }

    private func fake(
        _ folder: TemporaryFolder, _ script: String, timeout: Duration = .seconds(60)
    ) throws -> FFProbe {
        FFProbe(program: try folder.writeProgram("ffprobe", script), timeout: timeout)
    }
}
