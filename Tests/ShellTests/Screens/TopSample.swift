import API
import Control
import Core

@testable import Shell

/// What the tests of `top` show.
enum TopSample {
    static let now = WallTime(rfc3339: "2026-11-20T08:00:00Z") ?? WallTime(milliseconds: 0)

    static let absence = ControlError.notRunning(
        socket: "/run/sluice/control.sock", reason: "the socket exists, but no daemon listens on it")

    static func upload(_ number: Int, _ state: ShownState = .waiting, priority: Int = 0) -> UploadView {
        var view = UploadView.sample()
        view.id = "01JD3K8QWEDJ3T069W6KMA\(number + 1000)"
        view.name = "clip \(number).mp4"
        view.relative = view.name
        view.state = state
        view.priority = priority
        return view
    }

    static func facts(_ count: Int) -> TopFacts {
        TopFacts(
            status: .sample, uploads: (0..<count).map { upload($0) }, routes: .sample, quotas: [.sample], at: now)
    }

    static func screen(
        _ facts: TopFacts, _ state: TopState = TopState(), width: Int, height: Int
    ) -> TopScreen {
        TopScreen(
            facts: facts, state: state, console: Screen().console(colour: true), now: now, width: width, height: height)
    }
}

extension QuotaView {
    static let sample = QuotaView(
        place: "policy", text: "20 GB a day", counts: "bytes", direction: "sent", limit: 20_000_000_000,
        used: 5_000_000_000, reserved: 0, left: 15_000_000_000, from: "2026-11-20T00:00:00.000Z",
        until: "2026-11-21T00:00:00.000Z")
}
