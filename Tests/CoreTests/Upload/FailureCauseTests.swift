import Core
import Testing

@Suite("Causes of failures")
struct FailureCauseTests {
    @Test("each cause is found by its code, and other codes have none")
    func codes() {
        for code in Failure.Code.all {
            let causes = Failure.Cause.allCases.filter { $0.code == code }
            #expect(causes.count <= 1)
            #expect(Failure.Cause(code) == causes.first)
        }
        for cause in Failure.Cause.allCases { #expect(Failure.Code.all.contains(cause.code)) }
        #expect(Failure.Cause(.service("expired_elsewhere")) == nil)
    }
}
