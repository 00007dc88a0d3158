import Core
import FoundationEssentials
import TestKit
import Testing

@Suite("Failure codes", .timeLimit(.minutes(Patience.minutes(1))))
struct FailureCodeTests {
    @Test("a failure stores its code as plain text, also one that only another version knows")
    func stored() throws {
        for code in [Failure.Code.copyLost, .service("AccessDenied"), Failure.Code(rawValue: "moon_phase")] {
            let failure = Failure(.local, code: code, message: "no", at: WallTime(milliseconds: 1), retryable: true)
            let json = String(decoding: try JSONEncoder().encode(failure), as: UTF8.self)
            #expect(json.contains("\"code\":\"\(code.rawValue)\""))
            #expect(try JSONDecoder().decode(Failure.self, from: Data(json.utf8)) == failure)
        }
    }

    @Test("codes of answers are made from the status, the number, or the service's own code")
    func answers() {
        #expect(Failure.Code.http(503).rawValue == "http_503")
        #expect(Failure.Code.vimeo(4102).rawValue == "vimeo_4102")
        #expect(Failure.Code.service("NoSuchUpload").rawValue == "NoSuchUpload")
    }

    @Test("no code is listed twice, and none looks like that of an answer")
    func distinct() {
        let codes = Failure.Code.all.map(\.rawValue)
        #expect(Set(codes).count == codes.count)
        #expect(!codes.contains { $0.hasPrefix("http_") || $0.hasPrefix("vimeo_") })
    }
}
