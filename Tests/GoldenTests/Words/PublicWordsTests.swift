import API
import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Control
@testable import Daemon
@testable import Shell

/// The words that people, scripts and other programs rely on, each list against a file in `Tests/Fixtures/golden/words`.
@Suite("Public words", .timeLimit(.minutes(Patience.minutes(1))))
struct PublicWordsTests {
    @Test("help of each command")
    func help() async throws {
        var lines = try await print(["help"])
        for verb in Shell.verbs {
            lines += ["", "$ sluice \(verb.name) --help"]
            lines += try await print([FilePath(verb.name), "--help"])
        }
        try RecordedWords.expect("help.txt", lines)
    }

    @Test("keys of the configuration, and their defaults")
    func configuration() async throws {
        var lines = ["# Sections and their keys"]
        lines += Section.all.map { section in
            (section.path.isEmpty ? "(top)" : section.path) + ": " + section.keys.joined(separator: ", ")
        }
        lines += ["", "# Kinds of destination"]
        for type in DestinationTable.builtIn.map(\.type) {
            lines.append("\(type.name): presets \(type.presets.map(\.name).joined(separator: ", "))")
            lines += type.keys.flatMap(\.flat).map { key in
                "\(type.name).\(key.name)\(key.isRequired ? " (required)" : ""): \(takes(key.kind))"
            }
        }
        let file = RecordedWords.folder.appending("sluice.yaml")
        lines += ["", "$ sluice config --config sluice.yaml"]
        lines += try await print(["config", "--config", file]).map { line in
            line.replacing(file.display + ":", with: "sluice.yaml:").replacing(/\ +#/, with: "  #")
        }
        try RecordedWords.expect("configuration.txt", lines)
    }

    private func takes(_ kind: SettingKey.Kind) -> String {
        switch kind {
        case .choice(let words): words.joined(separator: " | ")
        case .whole(let range): "\(range)"
        case .section: "section"
        default: "\(kind)"
        }
    }

    @Test("the description of the API, without its prose")
    func openAPI() throws {
        let bytes = try Files.read(Repository.root.appending("docs/api/openapi.yaml"), limit: 1 << 20)
        let prose = /,?\ ?\b(description|summary): ('([^']|'')*'|[^,}]*)/
        var lines: [String] = []
        var proseIndent: Int?
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let indent = line.prefix { $0 == " " }.count
            if let above = proseIndent, indent > above { continue }
            proseIndent = nil
            let text = line.dropFirst(indent)
            if text.hasPrefix("description:") || text.hasPrefix("summary:") {
                proseIndent = indent
            } else {
                lines.append(String(line).replacing(prose, with: "").replacing("{, ", with: "{"))
            }
        }
        try RecordedWords.expect("openapi.txt", lines)
    }

    @Test("names of metrics, their types and labels")
    func metrics() throws {
        let lines = Metric.all.map { metric in
            "\(metric.name) \(metric.kind.rawValue)" + metric.labels.map { " " + $0 }.joined()
        }
        try RecordedWords.expect("metrics.txt", lines.sorted())
    }

    @Test("exit statuses, and the refusals of the API with theirs")
    func exitStatuses() throws {
        var lines = ["# Exit status, name"]
        lines += ExitCode.allCases.map { "\($0.rawValue) \($0)" }
        lines += ["", "# Refusal, HTTP status, exit status"]
        let refusals = [
            "not_found", "ambiguous", "conflict", "duplicate", "source_missing", "bad_request", "forbidden",
            "destination", "no_room", "unavailable",
        ]
        for word in refusals {
            let code = try #require(Refusal.Code(rawValue: word), "\(word)")
            lines.append("\(word) \(code.status) \(ExitCode(code).rawValue)")
        }
        try RecordedWords.expect("exit-statuses.txt", lines)
    }

    @Test("names of fields in the log")
    func logFields() throws { try RecordedWords.expect("log-fields.txt", try SourceWords.logFields()) }

    @Test("codes of failures")
    func failureCodes() throws {
        try RecordedWords.expect("failure-codes.txt", Failure.Code.all.map(\.rawValue).sorted())
    }

    @Test("every code of a failure is in the list, and is used")
    func usedFailureCodes() throws {
        let (declared, used) = try SourceWords.failureCodes()
        #expect(Set(declared.values) == Set(Failure.Code.all.map(\.rawValue)))
        #expect(declared.count == Failure.Code.all.count)
        #expect(declared.keys.filter { !used.contains($0) }.sorted() == [])
    }

    @Test("states, kinds and types")
    func kinds() throws {
        let lists: [(String, [String])] = [
            ("upload state, stored", UploadState.allCases.map(\.rawValue)),
            ("upload state, as `list --state` takes it", ListQuery.states), ("list", ListQuery.lists),
            ("asset state, stored", AssetState.allCases.map(\.rawValue)),
            ("source state, stored", SourceState.allCases.map(\.rawValue)),
            ("what is uploaded, stored", StagingMode.allCases.map(\.rawValue)),
            ("settled by, stored", settledBy.compactMap { SettleProof(rawValue: $0)?.rawValue }),
            ("failure class, stored", Failure.Class.all.map(\.rawValue)),
            ("hold kind", Hold.Kind.allCases.map(\.rawValue)), ("exception kind", Exemption.kinds.map(\.rawValue)),
            ("network class, stored", NetworkClass.allCases.map(\.rawValue)),
            ("usage grouping", UsageGrouping.allCases.map(\.rawValue)),
            ("event type", EventType.inStream.map(\.rawValue)),
            ("event type of hooks", EventType.forHooks.map(\.rawValue)),
            ("event field", EventField.allCases.map(\.rawValue)),
            ("kind of destination", DestinationTable.builtIn.map(\.type.name)),
            ("removable disk", RemovalSafety.allCases.map(\.rawValue)),
            ("log level", Log.Level.allCases.map(\.name)),
        ]
        try RecordedWords.expect("kinds.txt", lists.flatMap { ["# \($0.0)"] + $0.1 + [""] }.dropLast())
    }

    private let settledBy = ["marker", "lease", "proc", "closed", "quiet", "container", "broken", "adopted", "handed"]

    @Test("keys of each JSON value, and their types")
    func views() throws {
        let views: [(String, any Decodable.Type)] = [
            ("status", StatusView.self), ("list", UploadPage.self), ("show", UploadDetail.self), ("why", WhyView.self),
            ("plan", PlanView.self), ("usage", UsageView.self), ("quota", AllowancesReply.self),
            ("changed uploads", UploadsReply.self), ("allow, limit", OverridesReply.self),
            ("reload", ReloadView.self), ("rescan", RescanReply.self), ("check", CheckReport.self),
            ("hook test", HookTestResult.self), ("remote", RemoteReply.self), ("orphans", OrphansReply.self),
            ("event", EventView.self), ("run --once", OnceView.self), ("rebuild", RebuildReport.self),
            ("error", ErrorReply.self), ("request: add", AddRequest.self), ("request: selection", Selection.self),
            ("request: flush", FlushRequest.self), ("request: allow", AllowRequest.self),
            ("request: limit", LimitRequest.self), ("request: rescan", RescanRequest.self),
            ("request: check", CheckRequest.self), ("request: remote", RemoteRequest.self),
            ("request: orphans", OrphansRequest.self),
        ]
        try RecordedWords.expect("views.txt", views.flatMap { ["# \($0.0)"] + Shape.lines(of: $0.1) + [""] }.dropLast())
    }

    @Test("a difference names each missing or new line")
    func difference() {
        #expect(RecordedWords.difference(from: ["a", "b", "c"], to: ["a", "x", "c", "d"]) == "- 2: b\n+ 2: x\n+ 4: d")
    }

    /// The output of a verb, by lines.
    private func print(_ words: [FilePath]) async throws -> [String] {
        let kept = Mutex<[UInt8]>([])
        let status = await Shell.run(
            words,
            console: Console(isTerminal: false, size: { (100, .max) }, colour: false, environment: { _ in nil }) {
                bytes, _ in
                kept.withLock { $0 += bytes }
                return true
            }, signals: nil)
        let text = String(decoding: kept.withLock { $0 }, as: UTF8.self)
        try #require(status == .ok, "\(words): \(text)")
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}
