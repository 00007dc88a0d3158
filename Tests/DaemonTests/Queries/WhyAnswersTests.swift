import API
import Core
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Watch

@Suite("Why, without a daemon")
struct WhyAnswersTests {
    private let clocks = ManualClocks()

    private func paused(_ pauses: [PauseScope]) throws -> PolicySnapshot {
        try PolicySnapshot.given(clocks) { settings in
            settings.destinations.append(
                DestinationSettings(
                    name: "cloud", type: "scripted", values: [:], policy: PolicyOverrides(), place: "s:2"))
        } facts: { facts in
            facts.pauses.replace(
                pauses.map { PauseRecord(scope: $0.scope, name: $0.name, since: clocks.wall(), until: nil) })
            facts.overrides.replace([
                OverrideRecord(
                    scope: .folder, name: "cam", kind: .exemption(.window), since: clocks.wall(),
                    until: clocks.wall().advanced(by: .seconds(60)), who: "root")
            ])
        }
    }

    private func answer(
        _ state: UploadState, _ now: PolicySnapshot, settling: Hold? = nil
    ) async throws -> WhyAnswer {
        let scene = try await ComponentScene()
        var row = try await scene.row(try await scene.record("a.mp4"))
        row.upload.state = state
        var builder = UploadViewBuilder(now, ran: 0)
        let facts = builder.facts(of: row)
        return WhyAnswers(now: now).answer(builder.view(row, facts), of: row.upload, settling: settling)
    }

    @Test("a watched folder names its destinations, its condition, and each hold on its files once")
    func folder() throws {
        var state = WatchState(folder: "cam", path: "/given/cam", condition: .absent("no disk"))
        state.settling = 2
        let answers = WhyAnswers(
            now: try paused([PauseScope(scope: .folder, name: "cam"), PauseScope(scope: .destination, name: "nas")]))
        let answer = answers.answer(state, uploadTo: ["nas", "nas"])
        #expect(answer.state == .folder && answer.folder == "cam")
        #expect(answer.text.hasSuffix("go to nas, nas: it is absent: no disk; 2 of its files are settling"))
        #expect(answer.holds.map(\.text) == ["destination nas is paused", "folder cam is paused"])
        #expect(answer.exceptions?.map(\.name) == ["cam"])
    }

    @Test("an upload without a hold says when its turn comes, and a held one names its hold")
    func upload() async throws {
        let free = try paused([])
        let next = try await answer(.queued, free)
        #expect(next.text == "it starts when nas has reported its free space" || next.text == "it starts next")
        #expect(next.holds.isEmpty && next.exceptions?.map(\.name) == ["cam"])
        let held = try paused([PauseScope(scope: .all, name: "")])
        let waits = try await answer(.queued, held)
        #expect(waits.holds.map(\.kind.known) == [.global] && waits.text == waits.holds.first?.text)
    }

    @Test("an upload whose file settles again shows that as its last hold")
    func settling() async throws {
        let now = try paused([PauseScope(scope: .all, name: "")])
        let hold = Hold(.settling, since: clocks.wall(), text: "it still grows")
        let answer = try await answer(.queued, now, settling: hold)
        #expect(answer.holds.map(\.kind.known) == [.global, .settling])
    }

    @Test("an ended upload needs no route")
    func ended() async throws {
        let now = try paused([])
        #expect(try await answer(.completed, now).way == nil)
    }

    @Test("an unfinished upload that its destination drops before it can continue is named, with both times")
    func expiring() async throws {
        let scene = try await ComponentScene()
        var row = try await scene.row(try await scene.record("a.mp4"))
        row.upload.state = .queued
        let now = try paused([])
        func text(_ seconds: Int64, until end: Int64?) -> String {
            row.upload.expires = clocks.wall().advanced(by: .seconds(seconds))
            var facts = UploadViewBuilder.Facts()
            facts.own = [
                Hold(
                    .backoff, since: clocks.wall(), until: end.map { clocks.wall().advanced(by: .seconds($0)) },
                    text: "it waits")
            ]
            let view = UploadViewBuilder(now, ran: 0).view(row, facts)
            #expect(view.remote?.resumable?.expiresAt == row.upload.expires?.description)
            return WhyAnswers(now: now).answer(view, of: row.upload, settling: nil).text
        }
        #expect(text(600, until: 60) == "it waits")
        #expect(text(600, until: nil) == "it waits")
        #expect(text(60, until: 600).hasPrefix("it waits; the destination drops the unfinished upload at "))
        #expect(text(-60, until: nil).hasPrefix("it waits; the destination may have dropped the unfinished upload"))
    }
}
