import Core
import Testing

@testable import Destinations

@Suite("Evaluation of answers to a form")
struct FormVerdictTests {
    private static func settings(_ preset: String) -> FormSettings {
        var reading = FormReading(FormPreset.named(preset)?.values ?? [:])
        return reading.settings()
    }

    struct Row: Sendable {
        let preset: String
        let status: Int
        var body = "{}"
        var question = FormVerdict.Question.part
        let verdict: FormVerdict
    }

    static let table: [Row] = [
        Row(preset: "breakpoint", status: 200, body: #"{"data":{}}"#, verdict: .success),
        Row(preset: "breakpoint", status: 200, body: #"{"code":7}"#, verdict: .stop(.refused(after: nil))),
        Row(preset: "breakpoint", status: 200, body: "ok", verdict: .stop(.refused(after: nil))),
        Row(preset: "breakpoint", status: 404, verdict: .gone),
        Row(preset: "breakpoint", status: 410, verdict: .gone),
        Row(preset: "breakpoint", status: 404, question: .open, verdict: .stop(.misconfigured)),
        Row(preset: "breakpoint", status: 422, verdict: .damaged),
        Row(preset: "breakpoint", status: 400, verdict: .stop(.failUpload)),
        Row(preset: "breakpoint", status: 409, verdict: .stop(.failUpload)),
        Row(preset: "breakpoint", status: 413, verdict: .stop(.failUpload)),
        Row(preset: "breakpoint", status: 401, verdict: .stop(.authenticate)),
        Row(preset: "breakpoint", status: 403, verdict: .stop(.authenticate)),
        Row(preset: "breakpoint", status: 302, verdict: .stop(.misconfigured)),
        Row(preset: "breakpoint", status: 408, verdict: .stop(.retry(after: .seconds(1)))),
        Row(preset: "breakpoint", status: 425, verdict: .stop(.retry(after: .seconds(1)))),
        Row(preset: "breakpoint", status: 429, verdict: .stop(.rateLimit(after: nil))),
        Row(preset: "breakpoint", status: 503, verdict: .stop(.holdDestination(after: nil))),
        Row(preset: "breakpoint", status: 507, verdict: .stop(.outOfSpace(after: nil))),
        Row(preset: "resumable", status: 201, body: "", verdict: .success),
        Row(preset: "resumable", status: 202, body: "", verdict: .stop(.refused(after: nil))),
        Row(preset: "resumable", status: 404, verdict: .stop(.misconfigured)),
        Row(preset: "resumable", status: 500, verdict: .stop(.refused(after: nil))),
        Row(preset: "resumable", status: 501, verdict: .stop(.misconfigured)),
        Row(preset: "resumable", status: 200, body: " <!DOCTYPE HTML>", verdict: .stop(.misconfigured)),
        Row(preset: "flow", status: 202, body: "", verdict: .success),
        Row(preset: "dropzone", status: 204, body: "", verdict: .success),
        Row(preset: "fineuploader", status: 200, body: #"{"success":true}"#, verdict: .success),
        Row(preset: "fineuploader", status: 200, body: #"{"success":"true"}"#, verdict: .stop(.refused(after: nil))),
        Row(
            preset: "fineuploader", status: 200, body: #"{"success":false,"preventRetry":true}"#,
            verdict: .stop(.failUpload)),
        Row(preset: "fineuploader", status: 200, body: #"{"success":false,"reset":true}"#, verdict: .startOver),
        Row(preset: "plupload", status: 200, body: #"{"jsonrpc":"2.0","result":null,"id":"id"}"#, verdict: .success),
        Row(preset: "plupload", status: 200, body: #"{"error":{"code":101}}"#, verdict: .stop(.refused(after: nil))),
        Row(preset: "plupload", status: 422, verdict: .stop(.failUpload)),
    ]

    @Test("an answer is evaluated by the preset's rules, and then by its status")
    func verdicts() {
        for row in Self.table {
            let settings = Self.settings(row.preset)
            let text = row.body.drop { $0 == " " }.lowercased()
            let verdict = FormVerdict(
                row.question, status: row.status, FormReply(Array(row.body.utf8)), settings,
                wantsJSON: settings.done != nil, isPage: text.hasPrefix("<!doctype html"), wait: nil)
            #expect(verdict == row.verdict, "\(row)")
        }
    }

    @Test("conditions and statuses are parsed strictly")
    func reading() throws {
        let document = try #require(JSONValue.read(Array(#"{"a":{"b/c":[1,null,"x"]},"t":true,"n":"1"}"#.utf8)))
        let rows = [
            ("/a exists", true), ("/a absent", false), ("/z absent", true), ("/a/b~1c/1 absent", true),
            ("/a/b~1c/0 = 1", true), ("/a/b~1c/2 = x", true), ("/a/b~1c/2 = \"x\"", true), ("/t = true", true),
            ("/t = \"true\"", false), ("/n = 1", false), ("/a/b~1c/3 exists", false),
            ("/a/b~1c/+1 exists", false), ("/a/b~1c/01 exists", false),
        ]
        for (text, holds) in rows { #expect(try #require(FormCondition(text)).holds(in: document) == holds, "\(text)") }
        let listed = try #require(
            JSONValue.read(
                Array(#"{"files":[{"n":1},{"n":2,"error":"x"}],"none":[],"c":"503","s":"ERROR","z":0}"#.utf8)))
        let more: [(String, every: Bool, any: Bool)] = [
            ("/files/*/error empty", false, true), ("/files/*/error absent", false, true),
            ("/files/*/n exists", true, true),
            ("/files/*/error exists", false, true), ("/files/*/n = 1", false, true), ("/none/*/n exists", false, false),
            ("/none/*/error empty", true, false), ("/missing/*/error empty", true, false), ("/z empty", true, true),
            ("/s empty", false, false), ("/c not 400-599", false, false), ("/c not 500", true, true),
            ("/s not fail, error", false, false), ("/missing not error", true, true), ("/*/0/error empty", true, true),
        ]
        for (text, every, any) in more {
            let condition = try #require(FormCondition(text), "\(text)")
            #expect(condition.holds(in: listed) == every, "\(text)")
            #expect(condition.holds(in: listed, .any) == any, "\(text)")
        }
        for text in ["/a not", "/a not ", "/a not x,,y", "/a empty now"] {
            #expect(FormCondition(text) == nil, "\(text)")
        }
        for text in ["", "a exists", "/a", "/a is there", "/a =", "/a exists now", "/~2 exists", "/a~ exists"] {
            #expect(FormCondition(text) == nil, "\(text)")
        }
        #expect(try FormStatuses(["200-299", "404"]).contains(404))
        for text in ["", "2xx", "299-200", "600", "99", "200-", "-200", "200-300-400"] {
            #expect(throws: FormStatuses.SyntaxError.self) { try FormStatuses([text]) }
        }
    }

    @Test("a preset is complete by itself", arguments: FormPreset.names.filter { $0 != FormPreset.custom })
    func presets(_ name: String) {
        var reading = FormReading(
            ["preset": .text(name), "finish": .text("none")].mergedOver(FormPreset.named(name)?.values ?? [:]))
        let settings = reading.settings()
        #expect(reading.objections.isEmpty, "\(reading.objections)")
        #expect(settings.success.statuses.contains(200))
    }

    static let mistakes: [(values: [String: SettingValue], key: String, word: String)] = [
        (["send.fields": .map(["n": .literal("{inedx0}")])], "send.fields.n", "did you mean `{index0}`?"),
        (["send.fields": .map(["n": .literal("{index0")])], "send.fields.n", "without its `}`"),
        (
            ["send.fields": .map(["n": .literal("{secret:nas}")])], "send.fields.n",
            "names a secret that `secrets` does not have"
        ),
        (["send.fields": .map(["n": .literal("x{credential}")])], "send.fields.n", "`credential` is not set"),
        (["send.fields": .map(["n": .literal("{token}")])], "send.fields.n", "no server gives one"),
        (["open.fields": .map(["n": .literal("1")])], "open.token", "is missing"),
        (
            ["open.fields": .map(["n": .literal("{index1}")]), "open.token": .text("/t")], "open.fields.n",
            "about the whole file"
        ),
        (["open.token": .text("data")], "open.token", "takes a JSON pointer"),
        (["success.status": .texts(["2xx"])], "success.status", "200 to 599"),
        (["success.json": .texts(["/a is b"])], "success.json", "takes conditions like"),
        (["finish.url": .text("https://elsewhere.example/x")], "finish.url", "own server"),
        (["success.status": .texts(["404"])], "success.status", "from 200 to 299"),
        (["success.status": .texts(["200-302"])], "success.status", "from 200 to 299"),
        (["restart.status": .texts(["404", "201"])], "restart.status", "has 201, which `success` has too"),
        (
            ["success.status": .texts(["200"]), "permanent.status": .texts(["199-204"])], "permanent.status",
            "takes statuses from 200"
        ),
        (
            ["success.status": .texts(["202"]), "permanent.status": .texts(["201-204"])], "permanent.status",
            "has 202, which"
        ),
        (["send.fields": .map(["file": .literal("{index0}")])], "send.file_part.name", "a field has the same name"),
        (
            ["open.fields": .map(["b": .literal("")]), "open.file_part.name": .text("b"), "open.token": .text("/t")],
            "open.file_part.name", "a field has the same name"
        ),
        (["headers": .map(["X-A": .literal("1"), "x-a": .literal("2")])], "headers.x-a", "differs from `X-A`"),
        (
            ["headers": .map(["X-A": .environment("A")]), "abort.headers": .map(["x-A": .literal("2")])],
            "abort.headers.x-A", "differs from `X-A`"
        ),
        (["repeat_safe": .flag(false), "parallel_blocks": .whole(2)], "parallel_blocks", "must be 1"),
        (["block.size": .bytes(0)], "block.size", "1 B to 16 TiB"),
        (
            ["probe.list": .text("/a"), "probe.header": .text("Range")], "probe.header", "cannot be set together with"
        ),
    ]

    @Test("an unworkable setting is refused, with its key")
    func objections() {
        for (values, key, word) in Self.mistakes {
            let found = ChunkedForm.kind.type.objections(
                values.merging(["preset": .text("custom")]) { mine, _ in mine })
            #expect(
                found.contains { $0.key == key && $0.problem.contains(word) }, "\(key): \(found)")
        }
    }
}
