import API
import Core
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Parts of the status, without a daemon")
struct StatusPartsTests {
    private static let cam = UploadClass(folder: "cam", destination: "nas")
    private static let door = UploadClass(folder: "door", destination: "nas")
    private let clocks = ManualClocks()

    private func paused(_ scope: PauseRecord.Scope, _ name: String) throws -> StatusParts {
        StatusParts(
            now: try PolicySnapshot.given(clocks) { _ in
            } facts: { facts in
                facts.pauses.replace([PauseRecord(scope: scope, name: name, since: clocks.wall(), until: nil)])
            })
    }

    @Test("a class is shown with the hold on it, and one that may be sent is not")
    func classes() throws {
        let parts = try paused(.folder, "cam")
        let held = parts.now.held([(Self.cam, 3), (Self.door, 2)], standby: [:])
        #expect(held.map(\.upload) == [Self.cam])
        let views = parts.classes(held, begun: [:])
        #expect(views.map(\.folder) == ["cam"] && views.map(\.waiting) == [3])
        #expect(views.map(\.hold.kind.known) == [.global])
    }

    @Test("files that wait for another destination are shown, unless a hold on all files of their class is")
    func standby() throws {
        let parts = try paused(.folder, "cam")
        let standby = Standby(uploads: Spending(bytes: 9, files: 2), wait: .seconds(60))
        let held = parts.now.held([(Self.cam, 3), (Self.door, 3)], standby: [Self.cam: standby, Self.door: standby])
        #expect(held.map(\.hold.kind) == [.global, .alternative])
        #expect(held.map(\.count) == [3, 2])
        #expect(held.last?.hold.until == clocks.wall().advanced(by: .seconds(60)))
    }

    @Test("uploads that have begun do not count as waiting where their hold spares them")
    func begun() throws {
        let parts = StatusParts(now: try PolicySnapshot.given())
        func held(_ hold: Hold) -> [HeldUploads] { [HeldUploads(upload: Self.cam, count: 3, hold: hold, rules: [])] }
        var hold = Hold(.quota, since: clocks.wall(), holdsOnlyNewUploads: true, text: "used up")
        #expect(parts.classes(held(hold), begun: [Self.cam: 1]).map(\.waiting) == [2])
        #expect(parts.classes(held(hold), begun: [Self.cam: 3]).isEmpty)
        hold = Hold(.busy, since: clocks.wall(), text: "on battery")
        #expect(parts.classes(held(hold), begun: [Self.cam: 1]).map(\.waiting) == [3])
    }

    @Test("the queue counts what waits from each folder to each destination, also while it is staged, and nothing else")
    func queue() {
        func tally(_ folder: String, _ destination: String, _ state: UploadState, _ uploads: Int) -> Tally {
            Tally(folder: folder, destination: destination, state: state, uploads: uploads, bytes: Int64(uploads) * 10)
        }
        let queue = StatusParts.queue([
            tally("cam", "cloud", .queued, 4), tally("cam", "nas", .completed, 9), tally("cam", "nas", .queued, 2),
            tally("cam", "nas", .staging, 1), tally("cam", "nas", .uploading, 5), tally("door", "cloud", .failed, 3),
            tally("door", "nas", .queued, 0), tally("yard", "nas", .staging, 7),
        ])
        #expect(
            queue == [
                QueuedView(folder: "cam", destination: "cloud", waiting: 4, bytes: 40),
                QueuedView(folder: "cam", destination: "nas", waiting: 3, bytes: 30),
                QueuedView(folder: "yard", destination: "nas", waiting: 7, bytes: 70),
            ])
    }

    @Test("a destination is shown with its hold, its waiting uploads, its traffic and its space")
    func destination() throws {
        let tallies = [
            Tally(folder: "cam", destination: "nas", state: .queued, uploads: 2, bytes: 0),
            Tally(folder: "cam", destination: "nas", state: .staging, uploads: 1, bytes: 0),
            Tally(folder: "cam", destination: "nas", state: .uploading, uploads: 5, bytes: 0),
            Tally(folder: "cam", destination: "cloud", state: .queued, uploads: 7, bytes: 0),
        ]
        let today = Spending(bytes: 30, received: 4)
        let parts = StatusParts(
            now: try PolicySnapshot.given(clocks) { _ in
            } facts: { facts in
                facts.destinations.capacityAnswered(
                    "nas", RemoteSpace(free: 10), underWay: [], now: clocks.wall(), monotonic: clocks.monotonic(),
                    lasting: .seconds(60))
            })
        let settings = try #require(parts.now.settings.destination(named: "nas"))
        let view = parts.destination(settings, tallies, today: today, limit: 9)
        #expect(view.state == .up && view.hold == nil && view.running == 0 && view.waiting == 3)
        #expect(view.sentToday == 30 && view.receivedToday == 4 && view.limit == 9)
        #expect(view.space?.free == 10 && view.space?.askedAt == clocks.wall().description)
        let held = try paused(.destination, "nas").destination(settings, tallies, today: .none, limit: nil)
        #expect(held.hold?.kind.known == .global && held.state.rawValue == held.hold?.text && held.space == nil)
    }

    @Test("a folder is shown with its hold, and with the files that wait for others")
    func folder() throws {
        var state = WatchState(folder: "cam", path: "/given/cam", condition: .watching)
        state.settling = 2
        var held = GroupWaits()
        held.files = 3
        let parts = try paused(.folder, "cam")
        let view = parts.folder(state, held: held, card: nil, limit: 5, retention: nil)
        #expect(view.state == .watching && view.settling == 5 && view.gathering?.isEmpty == true)
        #expect(view.hold?.kind.known == .global && view.limit == 5)
        let free = StatusParts(now: try PolicySnapshot.given()).folder(
            state, held: nil, card: nil, limit: nil, retention: nil)
        #expect(free.settling == 2 && free.gathering == nil && free.hold == nil)
    }
}
