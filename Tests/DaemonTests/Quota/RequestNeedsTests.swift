import Testing

@testable import Daemon

@Suite("The needs of the running requests of an account")
struct RequestNeedsTests {
    private static let margin = QuotaAccount.margin

    @Test("as much may be in flight as the running requests have left to send, up to a margin for each")
    func underWay() {
        var needs = RequestNeeds()
        #expect(needs.underWay == 0)
        needs.beginRequest(costing: 1000)
        #expect(needs.underWay == 1000)
        needs.beginRequest(costing: 100 * Self.margin)
        #expect(needs.underWay == 2 * Self.margin)
        needs.spend(100 * Self.margin)
        #expect(needs.underWay == 1000)
        needs.endRequest()
        #expect(needs.underWay == 1000)
        needs.endRequest()
        #expect(needs.underWay == 0)
    }

    @Test("a request does not begin with the bytes that are in flight for another")
    func others() {
        var needs = RequestNeeds()
        #expect(needs.allowsRequest(needing: 1000, left: 1000))
        needs.beginRequest(costing: 5000)
        #expect(!needs.allowsRequest(needing: 1000, left: 5999))
        #expect(needs.allowsRequest(needing: 1000, left: 6000))
    }

    @Test("requests that were allowed as a whole need no more than their rest, and share it")
    func reservations() {
        var needs = RequestNeeds()
        needs.reserve(3000)
        #expect(needs.underWay == 3000)
        #expect(!needs.allowsRequest(needing: 9000, left: 2999))
        #expect(needs.allowsRequest(needing: 9000, left: QuotaAccount.request))
        needs.reserve(2000)
        needs.spend(1000)
        #expect(needs.reserved == 4000)
        needs.endReservation(unused: 500)
        #expect(needs.reserved == 3500)
        needs.endReservation(unused: 0)
        #expect(needs.reserved == 0)
        needs.endReservation(unused: 0)
        needs.beginRequest(costing: 700)
        #expect(needs.underWay == 700, "a reservation that ends twice counts once")
    }

    @Test("the cost of the request that was refused last is kept")
    func missing() {
        var needs = RequestNeeds()
        #expect(needs.missingBytes == nil)
        needs.refuse(100)
        needs.refuse(200)
        #expect(needs.missingBytes == 200)
    }
}
