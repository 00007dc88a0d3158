import Core
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store

@Suite("Inputs of a plan, without a daemon")
struct PlanBasisTests {
    private let clocks = ManualClocks()

    private func upload(_ id: String, sent: Int64 = 0, isBegun: Bool = false) -> ClassBacklog.Upload {
        ClassBacklog.Upload(id: id, size: 100, sent: sent, priority: 0, isRunning: false, isBegun: isBegun)
    }

    private func backlog(_ uploads: [ClassBacklog.Upload], folder: String = "cam") -> ClassBacklog {
        var backlog = ClassBacklog(one: UploadClass(folder: folder, destination: "nas"))
        backlog.first = uploads
        return backlog
    }

    private func exemption(_ scope: OverrideRecord.Scope, _ name: String, _ exemption: Exemption) -> OverrideRecord {
        OverrideRecord(
            scope: scope, name: name, kind: .exemption(exemption), since: clocks.wall(),
            until: clocks.wall().advanced(by: .seconds(60)), who: "root")
    }

    @Test("an upload lacks what its attempt has not sent, else what was sent before")
    func left() throws {
        let basis = PlanBasis(
            try PolicySnapshot.given(clocks), [backlog([upload("a", sent: 30), upload("b", sent: 30)])]
        ) { $0 == "a" ? 70 : nil }
        #expect(basis.input.queues.map { $0.uploads.map(\.left) } == [[30, 70]])
        #expect(basis.exemptCount == 0 && basis.leftOut.isEmpty)
    }

    @Test("an upload with an exemption of its own is planned by itself, with the exemptions of its folder")
    func exempt() throws {
        let now = try PolicySnapshot.given(clocks) { _ in
        } facts: { facts in
            facts.overrides.replace([
                exemption(.upload, "b", .quota), exemption(.folder, "cam", .window), exemption(.upload, "z", .quota),
            ])
        }
        let basis = PlanBasis(now, [backlog([upload("a"), upload("b")]), backlog([upload("c")], folder: "door")]) {
            _ in nil
        }
        #expect(basis.input.queues.map(\.uploads.count) == [1, 1, 1])
        #expect(basis.input.queues.map { $0.grants.map(\.exemption) } == [[.window], [], [.window, .quota]])
        #expect(basis.exemptCount == 1 && basis.leftOut == ["z"])
    }

    @Test("an upload that has begun continues with the piece that its quota lacked")
    func pieces() throws {
        let wait = QuotaWait(kind: QuotaState.Class("nas", from: "cam"), bytes: 1 << 20)
        let now = try PolicySnapshot.given(clocks) { _ in
        } facts: { facts in
            facts.quotaWaits.begin()
            for id in ["a", "b"] { facts.quotaWaits.ended(id, lacking: wait) }
        }
        let basis = PlanBasis(now, [backlog([upload("a", isBegun: true), upload("b")])]) { _ in nil }
        #expect(basis.input.queues.first?.uploads.map(\.piece) == [IndivisibleRequest(costing: 1 << 20), nil])
    }
}
