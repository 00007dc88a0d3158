import Core
import Testing

@testable import Destinations

/// The meaning of a status: the specification of every recovery, a row for each pair of request and status.
@Suite("TusVerdict")
struct TusVerdictTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let status: Int
        let post: TusVerdict
        let head: TusVerdict
        let patch: TusVerdict
        let delete: TusVerdict
        var testDescription: String { "\(status)" }

        init(_ status: Int, _ post: TusVerdict, _ head: TusVerdict, _ patch: TusVerdict, _ delete: TusVerdict) {
            (self.status, self.post, self.head, self.patch, self.delete) = (status, post, head, patch, delete)
        }

        /// The same for all four.
        init(_ status: Int, _ all: TusVerdict) { self.init(status, all, all, all, all) }
    }

    static let hold = TusVerdict.stop(.holdDestination(after: nil))
    static let wrong = TusVerdict.stop(.misconfigured)
    static let auth = TusVerdict.stop(.authenticate)
    static let refuse = TusVerdict.stop(.failUpload)
    static let soon = TusVerdict.stop(.retry(after: .seconds(1)))
    static let locked = TusVerdict.stop(.retry(after: .seconds(2)))
    static let later = TusVerdict.stop(.retry(after: nil))

    static let table: [Row] = [
        //     POST, HEAD, PATCH, DELETE
        Row(200, .success), Row(201, .success), Row(204, .success), Row(299, .success),
        Row(300, wrong), Row(301, wrong), Row(302, wrong), Row(303, wrong), Row(304, wrong),
        Row(307, .moved), Row(308, .moved),
        Row(400, .lessMetadata, .doubtful, .status(.failUpload, again: 2), .unsupported),
        Row(401, auth, auth, .status(.authenticate, again: 1), auth),
        Row(403, auth, auth, .status(.authenticate, again: 1), .unsupported),
        Row(404, wrong, .gone, .status(.retry(after: nil), again: 0), .success),
        Row(405, wrong, wrong, wrong, .unsupported),
        Row(408, hold, hold, soon, hold),
        Row(409, refuse, locked, .status(.retry(after: .seconds(2)), again: 0), locked),
        Row(410, wrong, .gone, .status(.retry(after: nil), again: 0), .success),
        Row(411, wrong, later, wrong, .unsupported),
        Row(412, wrong),
        Row(413, refuse, later, .tooMuch, .unsupported),
        Row(415, wrong, later, wrong, .unsupported),
        Row(402, hold, hold, .status(.holdDestination(after: nil), again: 0), .unsupported),
        Row(406, hold, hold, .status(.holdDestination(after: nil), again: 0), .unsupported),
        Row(418, hold, hold, .status(.holdDestination(after: nil), again: 0), .unsupported),
        Row(451, hold, hold, .status(.holdDestination(after: nil), again: 0), .unsupported),
        Row(499, hold, hold, .status(.holdDestination(after: nil), again: 0), .unsupported),
        Row(422, refuse, later, .status(.failUpload, again: 0), .unsupported),
        Row(421, hold, hold, soon, hold), Row(425, hold, hold, soon, hold),
        Row(423, locked),
        Row(429, .stop(.rateLimit(after: nil))),
        Row(431, .lessMetadata, wrong, wrong, .unsupported),
        Row(460, refuse, later, .damaged, .unsupported),
        Row(500, hold), Row(502, hold), Row(503, hold), Row(504, hold), Row(520, hold), Row(599, hold),
        Row(501, wrong, wrong, wrong, .unsupported),
        Row(507, .stop(.outOfSpace(after: nil))),
    ]

    private func verdict(_ verb: TusVerdict.Verb, _ status: Int, _ code: String? = nil, _ wait: Duration? = nil)
        -> TusVerdict
    {
        TusVerdict(verb, status: status, code: code, wait: wait)
    }

    @Test("verdicts follow the table", arguments: table)
    func follows(_ row: Row) {
        #expect(verdict(.POST, row.status) == row.post)
        #expect(verdict(.HEAD, row.status) == row.head)
        #expect(verdict(.PATCH, row.status) == row.patch)
        #expect(verdict(.DELETE, row.status) == row.delete)
    }

    @Test("no server error is ever final, and no failure counts as success", arguments: TusVerdict.Verb.allCases)
    func promises(_ verb: TusVerdict.Verb) {
        for status in 500...599 {
            #expect(verdict(verb, status) != Self.refuse)
            #expect(verdict(verb, status) != .gone)
        }
        for status in 300...599 where verb != .DELETE { #expect(verdict(verb, status) != .success) }
    }

    @Test("the delay that the server asks for is the wait")
    func waits() {
        #expect(verdict(.POST, 503, nil, .seconds(9)) == .stop(.holdDestination(after: .seconds(9))))
        #expect(verdict(.PATCH, 429, nil, .seconds(9)) == .stop(.rateLimit(after: .seconds(9))))
        #expect(verdict(.HEAD, 423, nil, .seconds(9)) == .stop(.retry(after: .seconds(9))))
        #expect(verdict(.PATCH, 507, nil, .seconds(900)) == .stop(.outOfSpace(after: .seconds(900))))
    }

    @Test("413 is no fault of the file if the server says that it is full")
    func full() {
        for verb in TusVerdict.Verb.allCases {
            let told = TusVerdict(verb, status: 413, code: nil, wait: .seconds(9), isFull: true)
            let expected = verb == .POST || verb == .PATCH ? .stop(.outOfSpace(after: .seconds(9))) : verdict(verb, 413)
            #expect(told == expected)
        }
        let large = TusVerdict(.POST, status: 413, code: "ERR_MAX_SIZE_EXCEEDED", wait: nil, isFull: true)
        #expect(large == Self.refuse)
        #expect(TusVerdict(.POST, status: 409, code: nil, wait: nil, isFull: true) == Self.refuse)
    }

    @Test(
        "if tusd's text says more than the status, the text counts",
        arguments: [
            (TusVerdict.Verb.POST, 400, "ERR_UPLOAD_REJECTED", refuse), (.POST, 403, "ERR_UPLOAD_REJECTED", refuse),
            (.PATCH, 400, "ERR_UPLOAD_STOPPED", refuse), (.POST, 413, "ERR_MAX_SIZE_EXCEEDED", refuse),
            (.PATCH, 400, "ERR_UPLOAD_INTERRUPTED", soon), (.PATCH, 400, "ERR_UNEXPECTED_EOF", soon),
            (.HEAD, 500, "ERR_LOCK_TIMEOUT", soon), (.PATCH, 500, "ERR_READ_TIMEOUT", soon),
            (.HEAD, 404, "ERR_UPLOAD_NOT_FOUND", .gone),
            (.DELETE, 400, "ERR_UPLOAD_TERMINATION_REJECTED", .unsupported),
            (.DELETE, 404, "ERR_UPLOAD_NOT_FOUND", .success), (.DELETE, 410, "ERR_UPLOAD_NOT_FOUND", .success),
            (.DELETE, 410, "ERR_UPLOAD_STOPPED", .success),
            (.PATCH, 413, "ERR_UPLOAD_SIZE_EXCEEDED", .tooMuch), (.PATCH, 503, "ERR_SERVER_SHUTDOWN", hold),
            (.POST, 412, "ERR_UNSUPPORTED_VERSION", wrong),
            (.PATCH, 400, "ERR_OF_TOMORROW", .status(.failUpload, again: 2)),
        ])
    func texts(_ verb: TusVerdict.Verb, _ status: Int, _ code: String, _ expected: TusVerdict) {
        #expect(verdict(verb, status, code) == expected)
    }
}
