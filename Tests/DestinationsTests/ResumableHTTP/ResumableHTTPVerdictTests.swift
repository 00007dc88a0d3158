import Core
import Testing

@testable import Destinations

/// The meaning of a status: the specification of every recovery, a row for each pair of request and status.
@Suite("ResumableHTTPVerdict")
struct ResumableHTTPVerdictTests {
    typealias Verdict = ResumableHTTPVerdict

    struct Row: CustomTestStringConvertible, Sendable {
        let status: Int
        let post: Verdict
        let head: Verdict
        let patch: Verdict
        let delete: Verdict
        var testDescription: String { "\(status)" }

        init(_ status: Int, _ post: Verdict, _ head: Verdict, _ patch: Verdict, _ delete: Verdict) {
            (self.status, self.post, self.head, self.patch, self.delete) = (status, post, head, patch, delete)
        }

        /// The same for all four.
        init(_ status: Int, _ all: Verdict) { self.init(status, all, all, all, all) }
    }

    static let hold = Verdict.stop(.holdDestination(after: nil))
    static let wrong = Verdict.stop(.misconfigured)
    static let auth = Verdict.stop(.authenticate)
    static let refuse = Verdict.stop(.failUpload)
    static let soon = Verdict.stop(.retry(after: .seconds(1)))
    static let locked = Verdict.stop(.retry(after: .seconds(2)))
    static let later = Verdict.stop(.retry(after: nil))
    /// The offset decides; if it has not moved, the file is refused.
    static let ofFile = Verdict.status(.failUpload, again: 0)
    static let ofPath = Verdict.status(.holdDestination(after: nil), again: 0)

    static let table: [Row] = [
        //     POST, HEAD, PATCH, DELETE
        Row(200, .success), Row(201, .success), Row(204, .success), Row(299, .success),
        Row(300, wrong), Row(301, wrong), Row(302, wrong), Row(303, wrong), Row(304, wrong),
        Row(307, .moved), Row(308, .moved),
        Row(400, refuse, .doubtful, ofFile, .unsupported),
        Row(401, auth, auth, .status(.authenticate, again: 1), auth),
        Row(403, auth, auth, .status(.authenticate, again: 1), .unsupported),
        Row(404, wrong, .gone, .status(.retry(after: nil), again: 0), .success),
        Row(405, wrong, wrong, wrong, .unsupported),
        Row(408, hold, hold, soon, hold),
        Row(409, refuse, locked, .status(.retry(after: .seconds(2)), again: 0), locked),
        Row(410, wrong, .gone, .status(.retry(after: nil), again: 0), .success),
        Row(411, wrong, later, wrong, .unsupported),
        Row(412, .otherVersion, .otherVersion, .otherVersion, wrong),
        Row(413, refuse, later, .tooMuch, .unsupported),
        Row(415, refuse, later, wrong, .unsupported),
        Row(402, hold, hold, ofPath, .unsupported), Row(406, hold, hold, ofPath, .unsupported),
        Row(418, hold, hold, ofPath, .unsupported), Row(451, hold, hold, ofPath, .unsupported),
        Row(499, hold, hold, ofPath, .unsupported),
        Row(422, refuse, later, ofFile, .unsupported), Row(460, refuse, later, ofFile, .unsupported),
        Row(421, hold, hold, soon, hold), Row(425, hold, hold, soon, hold),
        Row(423, locked),
        Row(429, .stop(.rateLimit(after: nil))),
        Row(431, refuse, wrong, wrong, .unsupported),
        Row(500, hold), Row(502, hold), Row(503, hold), Row(504, hold), Row(520, hold), Row(599, hold),
        Row(501, wrong, wrong, wrong, .unsupported),
        Row(507, .stop(.outOfSpace(after: nil))),
    ]

    @Test("verdicts follow the table", arguments: table)
    func follows(_ row: Row) {
        #expect(Verdict(.POST, status: row.status) == row.post)
        #expect(Verdict(.HEAD, status: row.status) == row.head)
        #expect(Verdict(.PATCH, status: row.status) == row.patch)
        #expect(Verdict(.DELETE, status: row.status) == row.delete)
    }

    @Test("no server error is ever final, and no failure counts as success", arguments: Verdict.Verb.allCases)
    func promises(_ verb: Verdict.Verb) {
        for status in 500...599 {
            #expect(Verdict(verb, status: status) != Self.refuse)
            #expect(Verdict(verb, status: status) != .gone)
        }
        for status in 300...599 where verb != .DELETE { #expect(Verdict(verb, status: status) != .success) }
    }

    @Test("the delay that the server asks for is the wait")
    func waits() {
        let reason = Verdict.Reason(wait: .seconds(9))
        #expect(Verdict(.POST, status: 503, reason) == .stop(.holdDestination(after: .seconds(9))))
        #expect(Verdict(.PATCH, status: 429, reason) == .stop(.rateLimit(after: .seconds(9))))
        #expect(Verdict(.HEAD, status: 423, reason) == .stop(.retry(after: .seconds(9))))
        #expect(Verdict(.PATCH, status: 409, reason) == .status(.retry(after: .seconds(9)), again: 0))
        #expect(Verdict(.PATCH, status: 507, reason) == .stop(.outOfSpace(after: .seconds(9))))
        #expect(Verdict(.POST, status: 413, Verdict.Reason(isFull: true)) == .stop(.outOfSpace(after: nil)))
    }

    @Test(
        "a problem document says more than the status",
        arguments: [
            (400, UploadProblem.completedUpload, Verdict.status(.retry(after: .seconds(2)), again: 0)),
            (410, .completedUpload, .status(.retry(after: .seconds(2)), again: 0)),
            (409, .mismatchingOffset(expected: 5), .status(.retry(after: .seconds(2)), again: 0)),
            (400, .inconsistentLength, ofFile),
        ])
    func problems(_ status: Int, _ problem: UploadProblem, _ verdict: Verdict) {
        #expect(Verdict(.PATCH, status: status, Verdict.Reason(problem: problem)) == verdict)
        #expect(Verdict(.POST, status: 400, Verdict.Reason(problem: problem)) == Self.refuse)
    }

    @Test("a text about the version leads to another version, and tusd's codes keep their meaning")
    func texts() {
        for verb in [Verdict.Verb.POST, .HEAD, .PATCH] {
            #expect(Verdict(verb, status: 400, Verdict.Reason(isOfVersion: true)) == .otherVersion)
            #expect(Verdict(verb, status: 400, Verdict.Reason(code: "ERR_UNSUPPORTED_VERSION")) == .otherVersion)
        }
        #expect(Verdict(.PATCH, status: 400, Verdict.Reason(code: "ERR_UPLOAD_INTERRUPTED")) == Self.soon)
        #expect(Verdict(.PATCH, status: 400, Verdict.Reason(code: "ERR_UPLOAD_STOPPED")) == Self.refuse)
        #expect(Verdict(.HEAD, status: 404, Verdict.Reason(code: "ERR_UPLOAD_NOT_FOUND")) == .gone)
        #expect(Verdict(.DELETE, status: 404, Verdict.Reason(code: "ERR_UPLOAD_NOT_FOUND")) == .success)
        #expect(Verdict(.DELETE, status: 400, Verdict.Reason(code: "ERR_UPLOAD_TERMINATION_REJECTED")) == .unsupported)
        #expect(Verdict(.POST, status: 413, Verdict.Reason(code: "ERR_MAX_SIZE_EXCEEDED", isFull: true)) == Self.refuse)
        #expect(Verdict(.PATCH, status: 503, Verdict.Reason(code: "ERR_SERVER_SHUTDOWN")) == Self.hold)
    }
}
