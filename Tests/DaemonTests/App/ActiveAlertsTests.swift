import Core
import Testing

@testable import Daemon

@Suite("Present obstacles")
struct ActiveAlertsTests {
    private static let hold = Hold(.disk, since: WallTime(milliseconds: 1), text: "the disk is full; 5 bytes free")

    @Test("a state that cannot be written wakes when it is found, when its reason changes, and when it ends")
    func state() {
        var alerts = ActiveAlerts()
        #expect(alerts.set(Alerts.state, Self.hold, changeKey: "full") == true)
        #expect(alerts.takeChanges() == .stateFailing)
        #expect(alerts.set(Alerts.state, Self.hold, changeKey: "full") == false)
        #expect(alerts.takeChanges() == [])
        #expect(alerts.set(Alerts.state, Self.hold, changeKey: "broken") == true)
        #expect(alerts.takeChanges() == .stateFailing)
        #expect(alerts[Alerts.state]?.count == 3)
        #expect(alerts.clear(Alerts.state) == true)
        #expect(alerts.takeChanges() == .stateWritable)
        #expect(alerts.clear(Alerts.state) == false)
        #expect(alerts.takeChanges() == [])
    }

    @Test("an obstacle keeps its first time, and other obstacles wake nothing")
    func others() {
        var alerts = ActiveAlerts()
        #expect(alerts.set("cam", Self.hold, changeKey: "a") == true)
        let later = Hold(.disk, since: WallTime(milliseconds: 9), text: "later")
        #expect(alerts.set("cam", later, changeKey: "a") == false)
        #expect(alerts["cam"]?.hold.since == Self.hold.since && alerts["cam"]?.hold.text == "later")
        #expect(alerts.clear("cam") == true)
        #expect(alerts.takeChanges() == [])
    }
}
