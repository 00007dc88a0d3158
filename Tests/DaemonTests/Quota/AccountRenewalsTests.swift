import Testing

@testable import Daemon

@Suite("The renewals of an account")
struct AccountRenewalsTests {
    @Test("an account schedules one renewal, however often it requests one")
    func once() {
        var renewals = AccountRenewals()
        #expect(renewals.request(for: .sending) == true)
        #expect(renewals.request(for: .sending) == false)
        #expect(renewals.takeRequest() == .sending)
        #expect(renewals.takeRequest() == nil)
        #expect(renewals.request(for: .sending) == true)
    }

    @Test("a request for bytes to be sent prevails over one for answers")
    func needs() {
        var renewals = AccountRenewals()
        #expect(renewals.request(for: .answers) == true)
        #expect(renewals.request(for: .sending) == false)
        #expect(renewals.request(for: .answers) == false)
        #expect(renewals.takeRequest() == .sending)
    }

    @Test("nothing is requested during a renewal")
    func running() {
        var renewals = AccountRenewals()
        renewals.begin()
        #expect(renewals.request(for: .sending) == false)
        #expect(renewals.takeRequest() == nil)
        renewals.end()
        #expect(renewals.ended == 1)
        #expect(renewals.request(for: .sending) == true)
    }

    @Test("nothing is requested when the quota has no more, until it promises more")
    func exhausted() {
        var renewals = AccountRenewals()
        renewals.exhaust()
        #expect(renewals.isOver)
        #expect(renewals.request(for: .sending) == false)
        renewals.resume()
        #expect(renewals.request(for: .sending) == true)
    }

    @Test("a closed account requests nothing, whatever the quota has")
    func closed() {
        var renewals = AccountRenewals()
        renewals.close()
        renewals.resume()
        #expect(renewals.isOver)
        #expect(!renewals.isLast)
        #expect(renewals.request(for: .answers) == false)
    }
}
