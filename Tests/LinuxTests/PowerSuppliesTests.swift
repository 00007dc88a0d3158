import Core
import TestKit
import Testing

@testable import Linux

@Suite("PowerSupplies")
struct PowerSuppliesTests {
    private func supplies(_ all: [String: [String: String]]) throws -> [Power.Supply] {
        let folder = TemporaryFolder()
        for (name, attributes) in all {
            for (attribute, value) in attributes {
                try folder.write(FilePath("\(name)/\(attribute)"), Array("\(value)\n".utf8))
            }
        }
        return try PowerSupplies(root: folder.path).all()
    }

    @Test("a laptop's battery and charger are read")
    func laptop() throws {
        let battery = ["type": "Battery", "status": "Discharging", "capacity": "47", "present": "1"]
        let found = try supplies(["BAT0": battery, "AC": ["type": "Mains", "online": "0"]])
        #expect(Set(found) == [.battery(isDraining: true, percent: 47), .outer(isOnline: false)])
        let usb = try supplies([
            "BAT0": battery.merging(["status": "Charging"]) { $1 }, "usb": ["type": "USB", "online": "1"],
        ])
        #expect(Set(usb) == [.battery(isDraining: false, percent: 47), .outer(isOnline: true)])
    }

    @Test("a mouse, an empty bay and unreadable supplies are ignored")
    func others() throws {
        #expect(
            try supplies([
                "hid": ["type": "Battery", "scope": "Device", "status": "Discharging", "capacity": "5"],
                "BAT1": ["type": "Battery", "present": "0"], "odd": ["online": "1"],
            ]).isEmpty)
        #expect(
            try supplies(["BAT0": ["type": "Battery", "capacity": "much"]]) == [
                .battery(isDraining: false, percent: nil)
            ])
    }

    @Test("a machine without supplies has none, and no error")
    func none() throws {
        let folder = TemporaryFolder()
        #expect(try PowerSupplies(root: folder.path).all().isEmpty)
        #expect(try PowerSupplies(root: folder.path.appending("nowhere")).all().isEmpty)
    }
}
