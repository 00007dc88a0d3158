import Core
import Linux
import TestKit
import Testing

@Suite("Life cycle of an upload")
struct LifecycleTests {
    /// The table in docs/architecture/lifecycle.md with all arrows. There are no others.
    static let arrows: [UploadState: [UploadEvent: UploadState]] = [
        .staging: [.staged: .queued, .refused: .failed, .cancelled: .cancelled],
        .queued: [.claimed: .uploading, .copyLost: .staging, .refused: .failed, .cancelled: .cancelled],
        .uploading: [
            .yielded: .queued, .attemptFailed: .queued, .verified: .completed, .refused: .failed,
            .copyLost: .staging, .cancelled: .cancelled,
        ],
        .failed: [
            .retriedFromCopy: .queued, .retriedFromSource: .staging, .cancelled: .cancelled, .dismissed: .removed,
        ],
        .cancelled: [.retriedFromCopy: .queued, .retriedFromSource: .staging, .dismissed: .removed],
        .completed: [.dismissed: .removed],
        .removed: [.retriedFromCopy: .queued, .retriedFromSource: .staging],
    ]

    @Test("exactly the transitions of the table are possible", arguments: UploadState.allCases, UploadEvent.allCases)
    func arrow(_ state: UploadState, _ event: UploadEvent) {
        #expect(state.after(event) == Self.arrows[state]?[event])
    }

    private static func page() throws -> [Substring] {
        let page = Repository.root.appending("docs/architecture/lifecycle.md")
        return String(decoding: try Files.read(page), as: UTF8.self).split(separator: "\n")
    }

    @Test("docs/architecture/lifecycle.md shows the same table")
    func manual() throws {
        let lines = try Self.page()
        func words(_ text: Substring) -> [String] {
            text.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
        }
        let table = lines.drop { !$0.hasPrefix("| event ↓") }.prefix { $0.hasPrefix("|") }
        let states = words(try #require(table.first)).compactMap { UploadState(rawValue: $0) }
        #expect(states.count == UploadState.allCases.count)
        var shown: [UploadState: [UploadEvent: UploadState]] = [:]
        for row in table.dropFirst(2) {
            let cells = row.split(separator: "|", omittingEmptySubsequences: false).dropFirst()
            let event = try #require(UploadEvent.allCases.first { words(cells.first ?? "").first == "\($0)" }, "\(row)")
            for (state, cell) in zip(states, cells.dropFirst()) {
                shown[state, default: [:]][event] = words(" " + cell).first.flatMap { UploadState(rawValue: $0) }
            }
        }
        #expect(shown == Self.arrows)
    }

    @Test("the diagram of docs/architecture/lifecycle.md has the same transitions")
    func diagram() throws {
        let diagram = try Self.page().drop { $0 != "stateDiagram-v2" }.prefix { !$0.hasPrefix("```") }
        var shown: [UploadState: [UploadEvent: UploadState]] = [:]
        var count = 0
        for line in diagram.dropFirst() where !line.contains("[*]") {
            // `    queued --> uploading: claimed`
            let words = line.split { " :".contains($0) }.map { String($0) }
            try #require(words.count == 4 && words[1] == "-->", "\(line)")
            let event = try #require(UploadEvent.allCases.first { words[3] == "\($0)" }, "\(line)")
            shown[try #require(UploadState(rawValue: words[0])), default: [:]][event] = UploadState(rawValue: words[2])
            count += 1
        }
        #expect(shown == Self.arrows)
        #expect(count == Self.arrows.values.reduce(0) { $0 + $1.count })
    }

    @Test(
        "a completed upload changes only by leaving its list",
        arguments: UploadEvent.allCases)
    func completedIsFinal(_ event: UploadEvent) {
        #expect(UploadState.completed.after(event) == (event == .dismissed ? .removed : nil))
    }

    @Test("completed is reached only through verified")
    func onlyVerified() {
        for state in UploadState.allCases {
            for event in UploadEvent.allCases where state.after(event) == .completed { #expect(event == .verified) }
        }
    }

    @Test(
        "source and copy are released when all uploads have ended and one is completed",
        arguments: [
            ([UploadState.completed], ReleaseVerdict.release), ([.completed, .cancelled], .release),
            ([.completed, .failed], .keepBoth), ([.completed, .queued], .keepBoth), ([.cancelled], .dropCopy),
            ([.failed], .keepBoth), ([.staging], .keepBoth), ([.uploading, .completed], .keepBoth), ([], .keepBoth),
            ([.cancelled, .cancelled], .dropCopy), ([.failed, .cancelled], .keepBoth),
        ])
    func release(_ states: [UploadState], _ verdict: ReleaseVerdict) {
        #expect(ReleaseVerdict(uploads: states) == verdict)
    }

    @Test("an expired upload keeps the source, whatever others have verified, and the copy while one needs it")
    func expired() {
        func verdict(_ states: [UploadState]) -> ReleaseVerdict { ReleaseVerdict(uploads: states, keepsSource: true) }
        #expect(verdict([.completed, .cancelled]) == .keepSource)
        #expect(verdict([.cancelled]) == .keepSource)
        #expect(verdict([.queued, .cancelled]) == .keepBoth)
        #expect(verdict([.failed, .cancelled]) == .keepBoth)
    }
}

@Suite("Backoff")
struct BackoffTests {
    @Test(
        "the wait doubles up to its ceiling, and jitter removes at most half",
        arguments: zip([1, 2, 3, 4, 9, 10, 1_000], [5, 10, 20, 40, 1_280, 1_800, 1_800]))
    func waits(after failures: Int, seconds: Int) {
        #expect(Backoff().wait(afterFailures: failures, jitter: 1) == .seconds(seconds))
        #expect(Backoff().wait(afterFailures: failures, jitter: 0) == .seconds(seconds) / 2)
    }
}

@Suite("UploadID")
struct UploadIDTests {
    @Test("ids sort by time, then by creation order")
    func order() {
        let early = UploadID(time: WallTime(milliseconds: 1_000), chance: .max)
        let late = UploadID(time: WallTime(milliseconds: 1_001), chance: 0)
        #expect(early < late)
        #expect(late < late.next(chance: 0))
        #expect(late.next(chance: 0).milliseconds == 1_001)
        #expect(early.text.utf8.count == 26)
    }

    @Test("the example of the ULID specification is reproduced", arguments: [(Int64(1_469_918_176_385), "01ARYZ6S41")])
    func vector(_ time: Int64, _ head: String) {
        #expect(UploadID(time: WallTime(milliseconds: time), chance: 0).text.hasPrefix(head))
    }

    @Test(
        "an id is parsed in any case and refused when invalid",
        arguments: ["", "01ARYZ6S41", "01ARYZ6S41U0000000000000I0"])
    func refused(_ text: String) {
        #expect(UploadID(text) == nil)
        let id = UploadID(time: WallTime(milliseconds: 5), chance: 77)
        #expect(UploadID(id.text.lowercased()) == id)
    }
}

@Suite("WallTime")
struct WallTimeTests {
    @Test(
        "time is written as RFC 3339 in UTC",
        arguments: [
            (Int64(0), "1970-01-01T00:00:00.000Z"), (1_763_625_600_000, "2025-11-20T08:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ])
    func text(_ milliseconds: Int64, _ text: String) {
        #expect(WallTime(milliseconds: milliseconds).description == text)
    }
}

@Suite("Admission")
struct AdmissionTests {
    static let now = WallTime(milliseconds: 1_000_000)
    static let clock = MonotonicTime(nanoseconds: 1_000_000_000_000)

    static func inputs(running: Int = 0, everything: Admission.Pause? = nil, at clock: MonotonicTime = clock)
        -> Admission.PolicyInputs
    { Admission.PolicyInputs(now: now, monotonic: clock, running: running, everything: everything) }

    static func remote(
        slots: Int = 2, running: Int = 0, pause: Admission.Pause? = nil, health: DestinationHealth = DestinationHealth()
    ) -> Admission.DestinationState {
        Admission.DestinationState(name: "nas", slots: slots, running: running, pause: pause, health: health)
    }

    static let paused = Admission.Pause(since: now, until: nil)
    static let down: DestinationHealth = {
        var health = DestinationHealth()
        health.failed(.destination, text: "no answer", wait: .seconds(60), now: now, monotonic: clock)
        return health
    }()

    @Test(
        "as many uploads run as both limits permit",
        arguments: [(3, 0, 2, 0, 2), (3, 2, 2, 0, 1), (1, 0, 2, 0, 1), (3, 1, 2, 1, 1), (10, 2, 5, 2, 3)])
    func slots(_ total: Int, _ running: Int, _ slots: Int, _ there: Int, _ free: Int) {
        let verdict = Admission(total: total).verdict(
            for: Self.remote(slots: slots, running: there), in: Self.inputs(running: running))
        #expect(verdict == .go(free))
    }

    @Test("a class is busy, not held, if only slots are missing")
    func busy() {
        #expect(Admission(total: 3).verdict(for: Self.remote(running: 2), in: Self.inputs(running: 2)) == .busy)
        #expect(Admission(total: 3).verdict(for: Self.remote(), in: Self.inputs(running: 3)) == .busy)
    }

    @Test("every hold is named, not only the first")
    func reasons() {
        let verdict = Admission(total: 3).verdict(
            for: Self.remote(pause: Self.paused, health: Self.down), in: Self.inputs(everything: Self.paused))
        guard case .wait(let holds) = verdict else {
            Issue.record("the verdict lets the upload run")
            return
        }
        #expect(holds.map(\.kind) == [.global, .global, .destination])
    }

    @Test("a destination that was down is probed with one upload when its time has come")
    func probe() {
        let before = Self.inputs(at: Self.clock.advanced(by: .seconds(59)))
        let after = Self.inputs(at: Self.clock.advanced(by: .seconds(60)))
        let admission = Admission(total: 5)
        #expect(admission.verdict(for: Self.remote(slots: 4, health: Self.down), in: before) != .go(1))
        #expect(admission.verdict(for: Self.remote(slots: 4, health: Self.down), in: after) == .go(1))
        #expect(admission.verdict(for: Self.remote(slots: 4, running: 1, health: Self.down), in: after) == .busy)
    }

    @Test("the start of a trouble is kept, and the first success clears it")
    func trouble() {
        var health = Self.down
        health.failed(
            .destination, text: "still none", wait: .seconds(120), now: Self.now.advanced(by: .seconds(60)),
            monotonic: Self.clock.advanced(by: .seconds(60)))
        #expect(health.trouble?.since == Self.now)
        #expect(health.trouble?.failures == 2)
        health.succeeded()
        #expect(health.currentHold == nil)
    }

    @Test("a delay that the server asks for is kept; otherwise the wait is at most five minutes")
    func waits() {
        func wait(_ remedy: Remedy, failures: Int = 1) -> Duration? {
            DestinationHealth.hold(for: remedy, failures: failures, backoff: Backoff(), jitter: 1)?.wait
        }
        #expect(wait(.holdDestination(after: .seconds(7))) == .seconds(7))
        #expect(wait(.holdDestination(after: nil), failures: 30) == .seconds(300))
        #expect(wait(.noRoom(after: .seconds(86_400))) == .seconds(86_400))
        #expect(wait(.rateLimit(after: .seconds(90))) == .seconds(90))
        #expect(wait(.authenticate) == .seconds(900))
        #expect(wait(.failUpload) == nil)
        #expect(wait(.retry(after: nil)) == nil)
        #expect(wait(.refused(after: nil)) == nil)
    }

    @Test(
        "a destination without space is queried after five minutes, and then less and less often",
        arguments: [(1, 3600, 300), (2, 3600, 600), (4, 3600, 2400), (30, 7200, 3600), (30, 1800, 1800), (1, 60, 60)])
    func patience(_ failures: Int, _ longest: Int, _ wait: Int) {
        let hold = DestinationHealth.hold(
            for: .noRoom(after: nil), failures: failures, backoff: Backoff(ceiling: .seconds(longest)), jitter: 1)
        #expect(hold?.kind == .quota)
        #expect(hold?.wait == .seconds(wait))
    }

    @Test("lack of space after a silence is a new trouble, and so is the reverse")
    func kinds() {
        var health = Self.down
        let later = Self.now.advanced(by: .seconds(60))
        let due = Self.clock.advanced(by: .seconds(60))
        #expect(health.failures(isFull: false, at: due) == 2)
        #expect(health.failures(isFull: true, at: due) == 1)
        health.failed(.quota, text: "full", wait: .seconds(300), now: later, monotonic: due)
        #expect(
            health.currentHold == Hold(.quota, since: later, until: later.advanced(by: .seconds(300)), text: "full"))
        #expect(health.trouble?.failures == 1)
        #expect(health.failures(isFull: true, at: due.advanced(by: .seconds(300))) == 2)
        health.failed(.rateLimit, text: "slow", wait: .seconds(1), now: later, monotonic: due)
        health.failed(
            .destination, text: "gone", wait: .seconds(1), now: later, monotonic: due.advanced(by: .seconds(1)))
        #expect(health.trouble?.failures == 2)
    }

    @Test("uploads that fail side by side are one failure of their destination")
    func sideBySide() {
        var health = DestinationHealth()
        for number in 0..<8 {
            health.failed(
                .destination, text: "gone", wait: .seconds(4), now: Self.now,
                monotonic: Self.clock.advanced(by: .milliseconds(number)))
        }
        #expect(health.trouble?.failures == 1)
        health.failed(
            .destination, text: "gone", wait: .seconds(4), now: Self.now,
            monotonic: Self.clock.advanced(by: .seconds(5)))
        #expect(health.trouble?.failures == 2)
    }
}

@Suite("Template")
struct TemplateTests {
    @Test(
        "a mistake is reported with its place",
        arguments: [
            ("{nmae}", 0, "no placeholder is called `{nmae}`; did you mean `{name}`?"),
            ("a{name", 1, "a `{` without its `}`; write `{{` for the brace itself"),
            ("ab}", 2, "a `}` without its `{`; write `}}` for the brace itself"),
            ("{size:%Y}", 0, "only `{modified:…}` and `{recorded:…}` take a format"),
        ])
    func mistakes(_ text: String, _ offset: Int, _ problem: String) {
        #expect(throws: Template.Mistake(offset: offset, problem: problem)) { try Template(text) }
    }

    @Test("values are inserted byte for byte, and doubled braces as one")
    func filled() throws {
        let made = try Template("/{{x}}/{folder}/{recorded:%Y}").filled { name, format in
            name == "folder" ? [0xFF] : Array((format ?? "").utf8)
        }
        #expect(made == Array("/{x}/".utf8) + [0xFF] + Array("/%Y".utf8))
    }

    @Test("in JSON no value ends its string")
    func json() throws {
        let template = try Template("{{\"n\": \"{name}\"}}").inJSON
        let made = template.filled { _, _ in Array("a\",\"b\":\"\\\n".utf8) }
        #expect(String(decoding: made, as: UTF8.self) == #"{"n": "a\",\"b\":\"\\\u000a"}"#)
    }
}

@Suite("Stored identity")
struct StoredIdentityTests {
    static let base = FileIdentity(
        folder: "cam", relative: "a.mp4", size: 10, modified: 5, inode: 7, born: 3, fileSystem: "uuid-1")

    static func with(_ change: (inout FileIdentity) -> Void) -> FileIdentity {
        var copy = base
        change(&copy)
        return copy
    }

    @Test(
        "the same version is recognised after a remount, and any known difference is another one",
        arguments: [
            (base, true), (with { $0.inode = nil }, true), (with { $0.born = nil }, true),
            // A file copied to a new disk with its times: no known value shows another version.
            (with { ($0.fileSystem, $0.inode) = ("uuid-2", 99) }, true),
            (with { $0.fileSystem = nil }, true),
            (with { $0.size = 11 }, false), (with { $0.modified = 6 }, false), (with { $0.inode = 8 }, false),
            (with { $0.relative = "b.mp4" }, false), (with { $0.folder = "door" }, false),
            (with { $0.born = 4 }, false),
        ])
    func same(_ other: FileIdentity, _ isSame: Bool) { #expect(Self.base.isSameVersion(as: other) == isSame) }

    @Test("of several holds the one that ends last is shown, and one without an end counts as last")
    func binding() {
        func hold(_ kind: Hold.Kind, _ until: Int64?) -> Hold {
            Hold(
                kind, since: WallTime(milliseconds: 0), until: until.map { WallTime(milliseconds: $0) }, text: "")
        }
        #expect([Hold]().lastEnding == nil)
        #expect([hold(.schedule, 5), hold(.quota, 9), hold(.backoff, 7)].lastEnding?.kind == .quota)
        #expect([hold(.schedule, 5), hold(.metered, nil), hold(.quota, 9)].lastEnding?.kind == .metered)
        #expect([hold(.metered, nil), hold(.global, nil)].lastEnding?.kind == .metered)
    }
}
