import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("AsyncSignal")
struct AsyncSignalTests {
    @Test("a signal before the wait is kept, and several count as one")
    func kept() async {
        let signal = AsyncSignal()
        for _ in 0..<3 { signal.signal() }
        await signal.wait()
        // Nothing is left: only the limit ends this one.
        let clock = ContinuousClock()
        let start = clock.now
        await signal.wait(atMost: .milliseconds(20))
        #expect(clock.now - start >= .milliseconds(20))
    }

    @Test("a signal from another task ends the wait, and so does cancellation")
    func rung() async {
        let signal = AsyncSignal()
        let waiting = Task { await signal.wait() }
        signal.signal()
        await waiting.value
        let cancelled = Task { await signal.wait() }
        cancelled.cancel()
        await cancelled.value
    }

    @Test("no signal is lost in a thousand waits")
    func stress() async {
        let (signal, back) = (AsyncSignal(), AsyncSignal())
        let echo = Task {
            for _ in 0..<1_000 {
                await signal.wait()
                back.signal()
            }
        }
        for _ in 0..<1_000 {
            signal.signal()
            await back.wait()
        }
        await echo.value
    }
}

@Suite("Remote names")
struct RemoteNamingTests {
    /// 2026-11-20 08:09:10 UTC; the tests set no time zone, so only values that are the same everywhere are tested.
    let naming = RemoteNaming(
        folder: "cam", relative: FilePath(bytes: Array("sub/clip\u{E4}.mp4".utf8) + [0xFF]), size: 42,
        modified: 1_795_162_150_000_000_000, sha256: [0xAB, 0xCD], id: "7")

    @Test(
        "every placeholder is filled in, byte for byte",
        arguments: [
            ("{folder}/{relative}", "cam/sub/clip\\xff"), ("{size}-{id}-{sha256}", "42-7-abcd"), ("{dir}", "sub"),
            ("{year}-{month}", "2026-11"), ("{recorded:%Y%%}", "2026%"), ("{{{folder}}}", "{cam}"),
        ])
    func filled(_ template: String, _ expected: String) throws {
        let made = FilePath(bytes: naming.fill(try Template(template))).display
        #expect(made == expected.replacing("clip\\xff", with: "clip\u{E4}.mp4\\xff"))
    }

    @Test(
        "placeholders take facts from the recording",
        arguments: [
            ("{recorded:%Y}", "2024"), ("{duration}_{width}x{height}", "1m05s_64x48"), ("{camera}", "Acme _5{"),
            ("{modified:%Y}", "2026"),
        ])
    func facts(_ template: String, _ expected: String) throws {
        var naming = naming
        naming.facts = MediaFacts(
            recorded: WallTime(milliseconds: 1_714_558_830_000), duration: 65_400, width: 64, height: 48, make: "Acme",
            model: "/5{")
        #expect(naming.fill(try Template(template)) == Array(expected.utf8))
        // The target of a move keeps them, and leaves the rest for the day of the move.
        let target = try Template("/done/\(template)/{id}{{/{modified:%m}")
        guard case .move(let settled) = naming.settled(.move(to: target)) else { throw NotSettled() }
        #expect(!settled.namesMediaFacts)
        var later = naming
        later.facts = MediaFacts()
        #expect(later.fill(settled) == naming.fill(target))
    }

    private struct NotSettled: Error {}

    @Test("without facts, the file's time replaces the recording's and other facts are empty")
    func noFacts() throws {
        let template = try Template("{recorded:%Y-%m}|{duration}{width}{height}{camera}|{modified:%Y-%m}")
        #expect(naming.fill(template) == Array("2026-11||2026-11".utf8))
    }

    @Test("a camera name with path components cannot leave the folder")
    func climbing() throws {
        var naming = naming
        naming.facts = MediaFacts(model: "../..")
        #expect(naming.target(try Template("/done/{camera}/{id}")) == MoveTarget(base: "/done", relative: "_../7"))
    }

    @Test(
        "a remote name is relative and cannot climb above its root, whatever produced it",
        arguments: [
            ("/{folder}//x/./{name}", "cam/x/a"), ("../../{name}", "a"), ("{dir}/{name}", "a"), ("{dir}", "a"),
        ])
    func remote(_ template: String, _ expected: String) throws {
        let naming = RemoteNaming(folder: "cam", relative: "a", size: 1, modified: 0)
        #expect(naming.remoteName(try Template(template)) == FilePath(expected))
    }
}

@Suite("ProgressTotals")
struct ProgressTotalsTests {
    @Test("totals only grow while there is work, and start again on an idle daemon")
    func totals() {
        let batch = ProgressTotals()
        func files(_ ongoing: Int, _ completed: Int) -> [Int] {
            let figures = batch.figures(
                ongoing: ongoing, ongoingBytes: Int64(ongoing * 10), completed: completed,
                completedBytes: Int64(completed * 10))
            return [figures.filesDone, figures.filesTotal, Int(figures.bytesTotal)]
        }
        #expect(files(0, 5) == [0, 0, 0])
        #expect(files(3, 5) == [0, 3, 30])
        #expect(files(2, 6) == [1, 3, 30])
        #expect(files(4, 6) == [1, 5, 50])
        #expect(files(0, 10) == [0, 0, 0])
        #expect(files(1, 10) == [0, 1, 10])
    }
}

@Suite("Uploads in progress")
struct LiveUploadsTests {
    @Test("the rate covers the last seconds and falls when no bytes move")
    func rate() {
        let clocks = ManualClocks()
        let live = LiveUploads(clocks: clocks)
        live.begin("a", to: "nas", acked: 1_000, size: 100_000)
        clocks.advance(by: .seconds(1))
        live.sent("a", 11_000)
        #expect(live["a"]?.rate == 10_000)
        clocks.advance(by: .seconds(10))
        #expect(live["a"]?.rate == 0)
        live.end("a")
        #expect(live["a"] == nil)
        #expect(live.isEmpty)
    }

    @Test("acknowledged bytes count as sent")
    func acknowledged() {
        let live = LiveUploads(clocks: ManualClocks())
        live.begin("a", to: "nas", acked: 0, size: 10)
        live.acked("a", 7)
        #expect(live["a"]?.sent == 7)
    }
}

@Suite("Stop requests")
struct StopRequestsTests {
    @Test("only the uploads that are meant pause, until their pause is taken back")
    func pause() {
        let stops = StopRequests()
        stops.pause(afterPart: ["a", "b"])
        #expect(stops.shouldPause("a") && stops.shouldPause("b") && !stops.shouldPause("c"))
        stops.clearPause("a")
        #expect(!stops.shouldPause("a"))
        #expect(stops.pausing == ["b"])
    }

    @Test("the end of all attempts pauses none of them, and a pause ends none")
    func end() {
        let stops = StopRequests()
        stops.pause(afterPart: ["a"])
        #expect(!stops.endsAll)
        stops.clearPause("a")
        stops.endAll()
        #expect(stops.endsAll && !stops.shouldPause("a"))
    }
}
