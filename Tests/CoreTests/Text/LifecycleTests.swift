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
