import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite("Device events", .timeLimit(.minutes(Patience.minutes(1))))
struct DeviceEventsTests {
    @Test("a datagram belongs to the class that it names")
    func classes() {
        let text = "change@/devices/AC\0ACTION=change\0DEVPATH=/devices/AC\0SUBSYSTEM=power_supply\0SEQNUM=7\0"
        let datagram = Array(text.utf8)[...]
        #expect(DeviceEvents.isEvent(datagram, of: Array("SUBSYSTEM=power_supply".utf8)))
        #expect(!DeviceEvents.isEvent(datagram, of: Array("SUBSYSTEM=power".utf8)))
        #expect(!DeviceEvents.isEvent(Array("SUBSYSTEM=mem\0ACTION=add\0".utf8)[...], of: Array("SUBSYSTEM=mem".utf8)))
        #expect(!DeviceEvents.isEvent([], of: Array("SUBSYSTEM=mem".utf8)))
    }

    @Test(
        "the kernel's own events are delivered, those of other classes are not",
        .enabled(if: geteuid() == 0, "only root can have the kernel tell of a device: run the tests as root"))
    func kernel() async throws {
        let counts = Counts()
        let events = try DeviceEvents(of: "mem") { counts.told.add(1, ordering: .relaxed) }
        let other = try DeviceEvents(of: "no_such_class") { counts.others.add(1, ordering: .relaxed) }
        for number in 1...3 {
            try DeviceEvent.make()
            try await eventually("event \(number) has been delivered") {
                counts.told.load(ordering: .relaxed) >= number
            }
        }
        #expect(counts.others.load(ordering: .relaxed) == 0)
        events.stop()
        other.stop()
    }

    private final class Counts: Sendable {
        let told = Atomic(0)
        let others = Atomic(0)
    }
}
