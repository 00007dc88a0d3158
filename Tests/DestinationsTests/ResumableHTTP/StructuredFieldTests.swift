import TestKit
import Testing
import Transport

@testable import Destinations

/// Structured fields (RFC 9651), and the draft's fields made of them.
@Suite("Structured fields")
struct StructuredFieldTests {
    private func item(_ value: String) -> StructuredField.Value? {
        StructuredField.item("x", in: Headers([("X", value)]))
    }

    @Test(
        "integers and booleans are read, with parameters and spaces around them",
        arguments: [
            ("0", .integer(0)), ("42", .integer(42)), ("-7", .integer(-7)), (" 5 ", .integer(5)),
            ("007", .integer(7)), ("999999999999999", .integer(999_999_999_999_999)), ("?1", .boolean(true)),
            ("?0", .boolean(false)), ("5;a", .integer(5)), ("5;a=1;b=\"x\"", .integer(5)), ("?1; a=?0", .boolean(true)),
            ("5;*k=tok/en", .integer(5)),
        ] as [(String, StructuredField.Value)])
    func values(_ text: String, _ value: StructuredField.Value) {
        #expect(item(text) == value)
    }

    @Test(
        "values of other types are recognised as such",
        arguments: [
            "1.5", "-0.25", "\"a\"", "\"a \\\"b\\\" \\\\\"", "token", "*t", "a/b:c", ":YWJj:", "::", "@1659578233",
            "%\"a%c3%bc\"",
        ])
    func others(_ text: String) {
        #expect(item(text) == .other)
    }

    @Test(
        "what cannot be parsed is no value",
        arguments: [
            "", " ", "5 6", "5,5", "5, 6", "1000000000000000", "--5", "-", "+5", "5.", "1.2345", "1234567890123.1",
            "?2",
            "?", "?1?", "\"a", "\"a\\x\"", "\"é\"", "é", "5;", "5;A=1", "5;a=", "5;a= 1", ":abc", "@", "@1.5", "%a",
            "0x10",
            "5 ;a", "(1 2)", "\u{0}5", "5\t",
        ])
    func garbage(_ text: String) {
        #expect(item(text) == nil)
    }

    @Test("a missing header, and one that is given twice, has no value")
    func lines() {
        #expect(StructuredField.item("x", in: Headers()) == nil)
        #expect(StructuredField.item("x", in: Headers([("X", "5"), ("x", "5")])) == nil)
        #expect(
            StructuredField.dictionary("x", in: Headers([("X", "a=1"), ("x", "b")])) == [
                "a": .integer(1), "b": .boolean(true),
            ])
    }

    @Test(
        "dictionaries",
        arguments: [
            ("", [:]), ("a=1", ["a": .integer(1)]), ("a=1,b=2", ["a": .integer(1), "b": .integer(2)]),
            ("a=1 ,\t b;x=1, c=(1 \"2\");y", ["a": .integer(1), "b": .boolean(true), "c": .other]),
            ("a=1, a=2", ["a": .integer(2)]), ("max-size=5, *x_-.*=tok", ["max-size": .integer(5), "*x_-.*": .other]),
            ("c=()", ["c": .other]),
        ] as [(String, [String: StructuredField.Value])])
    func dictionaries(_ text: String, _ members: [String: StructuredField.Value]) {
        #expect(StructuredField.dictionary("x", in: Headers([("X", text)])) == members)
    }

    @Test(
        "what cannot be parsed is no dictionary",
        arguments: [
            "a=1,", ",", "A=1", "a==1", "a=1 b=2", "1=a", "a=(1", "a=(1\t2)", "a=1;", "a=", "a,,b", "a=1;b=(1)",
        ])
    func noDictionaries(_ text: String) {
        #expect(StructuredField.dictionary("x", in: Headers([("X", text)])) == nil)
    }

    @Test("a field with a value of the wrong type is ignored")
    func fields() {
        func read(_ lines: (String, String)...) -> UploadFields { UploadFields(Headers(lines)) }
        #expect(read(("upload-offset", "5")).offset == 5)
        for wrong in ["-5", "?1", "5.0", "\"5\"", "5, 5", "1000000000000000", "5 bytes"] {
            #expect(read(("Upload-Offset", wrong)).offset == nil)
            #expect(read(("Upload-Length", wrong)).length == nil)
        }
        #expect(read(("Upload-Complete", "?1")).isComplete == true)
        #expect(read(("Upload-Complete", "?0")).isComplete == false)
        for wrong in ["1", "true", "?2", "\"?1\"", "?1, ?1"] {
            #expect(read(("Upload-Complete", wrong)).isComplete == nil)
        }
        #expect(!read(("Content-Length", "5")).isOfDraft && read(("Upload-Offset", "x")).isOfDraft)
    }

    @Test("Upload-Incomplete, which an old library sends, means the opposite of Upload-Complete")
    func incomplete() {
        #expect(UploadFields(Headers([("Upload-Incomplete", "?0")])).isComplete == true)
        #expect(UploadFields(Headers([("Upload-Incomplete", "?1")])).isComplete == false)
        #expect(UploadFields(Headers([("Upload-Incomplete", "?0"), ("Upload-Complete", "?0")])).isComplete == false)
    }

    @Test("limits: unknown keys are ignored, and a wrong type of a known key voids the header")
    func limits() {
        func read(_ text: String) -> UploadLimits? { UploadLimits(Headers([("Upload-Limit", text)])) }
        let all = read("max-size=5, min-size=0, max-append-size=3, min-append-size=1, max-age=3600, later=\"x\";y=1")
        #expect(all?.maxSize == 5 && all?.minSize == 0 && all?.maxAppendSize == 3 && all?.minAppendSize == 1)
        #expect(all?.maxAge == 3600)
        #expect(read("") == UploadLimits() && read("other") == UploadLimits())
        for void in [
            "max-size", "max-size=5.5", "max-size=\"5\"", "max-size=-1", "max-size=(5)", "min-size=0, max-age=?1", "5",
            "max-size=5;",
        ] {
            #expect(read(void) == nil, "\(void)")
        }
        #expect(UploadLimits(Headers()) == nil)
    }

    @Test("a limit that contradicts another one, or leaves no byte, is no trap")
    func contradictions() {
        var limits = UploadLimits()
        (limits.maxAppendSize, limits.minAppendSize) = (10, 50)
        #expect(limits.minRequest == 10)
        limits.maxAppendSize = 0
        #expect(limits.objection(toSize: 1) != nil && limits.objection(toSize: 0) == nil)
    }

    @Test("problem documents are known by their exact types")
    func problems() {
        func read(_ type: String, _ more: String = "", _ media: String = "application/problem+json") -> UploadProblem? {
            UploadProblem(
                Response(
                    status: 409, headers: ["Content-Type": media],
                    body: Array("{\"type\": \"https://iana.org/assignments/http-problem-types#\(type)\"\(more)}".utf8)))
        }
        #expect(read("mismatching-upload-offset", ", \"expected-offset\": 12") == .mismatchingOffset(expected: 12))
        for wrong in ["", ", \"expected-offset\": -1", ", \"expected-offset\": \"12\"", ", \"expected-offset\": 1.5"] {
            #expect(read("mismatching-upload-offset", wrong) == .mismatchingOffset(expected: nil))
        }
        #expect(read("completed-upload", "", "Application/Problem+JSON; charset=utf-8") == .completedUpload)
        #expect(read("inconsistent-upload-length") == .inconsistentLength)
        #expect(read("completed-upload", "", "application/json") == nil && read("other") == nil)
    }
}
