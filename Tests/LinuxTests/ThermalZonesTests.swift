import Core
import TestKit
import Testing

@testable import Linux

@Suite("ThermalZones")
struct ThermalZonesTests {
    private func hottest(_ zones: [String: String]) throws -> Int? {
        let folder = TemporaryFolder()
        for (name, text) in zones { try folder.write(FilePath(name), Array("\(text)\n".utf8)) }
        return ThermalZones(root: folder.path).hottest
    }

    @Test("the hottest zone counts, and a part of a degree above a limit is above it")
    func hottest() throws {
        #expect(try hottest(["thermal_zone0/temp": "48123", "thermal_zone12/temp": "70001"]) == 71)
        #expect(try hottest(["thermal_zone0/temp": "70000"]) == 70)
        #expect(try hottest(["thermal_zone0/temp": "-12500"]) == -12)
    }

    @Test("zones without a value are left out, and cooling devices are none")
    func others() throws {
        #expect(
            try hottest([
                "thermal_zone0/temp": "35000", "thermal_zone1/temp": "-274000", "thermal_zone2/temp": "hot",
                "thermal_zone3/type": "iwlwifi_1", "cooling_device0/temp": "90000",
            ]) == 35)
    }

    @Test("without a zone there is no temperature")
    func none() throws {
        #expect(try hottest([:]) == nil)
        #expect(ThermalZones(root: TemporaryFolder().path.appending("nowhere")).hottest == nil)
    }
}
