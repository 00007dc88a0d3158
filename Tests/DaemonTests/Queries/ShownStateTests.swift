import API
import Core
import Testing

@testable import Daemon
@testable import Store

@Suite("Shown states")
struct ShownStateTests {
    private static let cam = UploadClass(folder: "cam", destination: "nas")
    private static let door = UploadClass(folder: "door", destination: "nas")

    private static func search(_ state: ShownState) -> ShownStateSearch {
        var filter = UploadFilter()
        filter.states = [.staging, .queued, .uploading]
        var search = ShownStateSearch(state: state, filter: filter)
        let hold = Hold(.rule, since: WallTime(milliseconds: 0), text: "closed")
        search.classHolds = [(cam, [hold]), (door, [])]
        return search
    }

    @Test("queued uploads are searched only in classes without a hold")
    func queued() {
        var search = Self.search(.queued)
        #expect(search.parts.map(\.classes) == [[Self.door]])
        #expect(search.parts.map(\.states) == [[.queued]])
        search.everythingWaits = true
        #expect(search.parts.isEmpty)
    }

    @Test("waiting uploads are those of held classes, and those with a hold of their own")
    func waiting() {
        var search = Self.search(.waiting)
        #expect(search.parts.map(\.classes) == [[Self.cam], nil])
        #expect(search.parts.map(\.isHeld) == [false, true])
        search.copiesWait = true
        #expect(search.parts.map(\.states) == [[.queued], [.staging, .queued], [.staging]])
        search.everythingWaits = true
        #expect(search.parts == [search.filter])
    }

    @Test("paused uploads are not those that a policy rule holds")
    func paused() {
        var search = Self.search(.paused)
        #expect(search.parts.first?.classes == [])
        search.classHolds.append((Self.door, [Hold(.global, since: WallTime(milliseconds: 0), text: "paused")]))
        #expect(search.parts.first?.classes == [Self.door])
    }

    @Test("states that depend on no hold are searched in one query")
    func others() {
        #expect(Self.search(.settling).parts.map(\.isUnsettled) == [true])
        #expect(Self.search(.uploading).parts == [Self.search(.uploading).filter])
        #expect(!Self.search(.expired).dependsOnHolds)
    }

    @Test("a query for a shown state asks for the stored states behind it")
    func storedStates() throws {
        var query = ListQuery()
        #expect(!(try query.storedStates.contains(.removed)))
        query.state = "waiting"
        #expect(try query.storedStates == [.staging, .queued])
        query.list = "completed"
        #expect(throws: Refusal.self) { try query.storedStates }
    }

    @Test(
        "unknown lists and states are refused, and a near name is suggested",
        arguments: [("list", "ongoin", nil), ("state", "uploadin", "uploading")] as [(String, String, String?)])
    func unknown(_ key: String, _ value: String, _ suggestion: String?) {
        var query = ListQuery()
        if key == "list" { query.list = value } else { query.state = value }
        #expect {
            try query.storedStates
        } throws: { error in
            guard let refusal = error as? Refusal else { return false }
            return refusal.code == .badRequest && (suggestion.map { refusal.message.contains("`\($0)`") } ?? true)
        }
    }

    @Test("removed uploads are only in the history")
    func history() throws {
        var query = ListQuery()
        query.list = "history"
        #expect(try query.storedStates == [.removed])
        query.state = "failed"
        #expect(throws: Refusal.self) { try query.storedStates }
    }

    @Test("counts have an entry for each list, and none for the history")
    func counts() {
        let states: [UploadState] = [.staging, .queued, .uploading, .completed, .failed, .cancelled, .removed]
        let counts = Counts(states.map { Tally(folder: "cam", destination: "nas", state: $0, uploads: 2, bytes: 0) })
        #expect(counts.ongoing == 6)
        #expect([counts.completed, counts.failed, counts.cancelled] == [2, 2, 2])
    }
}
