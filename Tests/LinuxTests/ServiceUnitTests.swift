import Core
import Linux
import TestKit
import Testing

@Suite("Rights of a systemd service")
struct ServiceUnitTests {
    @Test("rights are read from unit and drop-ins, the later one counts, and an empty list resets")
    func units() throws {
        let folder = TemporaryFolder()
        let places: [FilePath] = [folder.path.appending("etc"), folder.path.appending("usr")]
        #expect(ServiceUnit("a.service", in: places) == nil)
        let text =
            "[Unit]\nUser=nobody\n[Service]\n# User=x\nUser=sluice\nGroup = sluice\nSupplementaryGroups=audio video\n"
        try folder.write("usr/a.service", Array(text.utf8))
        let unit = try #require(ServiceUnit("a.service", in: places))
        #expect(unit.user == "sluice" && unit.group == "sluice" && unit.groups == ["audio", "video"])
        try folder.write(
            "usr/a.service.d/20-b.conf", Array("[Service]\nSupplementaryGroups=\nSupplementaryGroups=camera\n".utf8))
        try folder.write("etc/a.service.d/30-c.conf", Array("[Service]\nSupplementaryGroups=plugdev\n".utf8))
        #expect(ServiceUnit("a.service", in: places)?.groups == ["camera", "plugdev"])
        // A file with the same name in a place of higher rank.
        try folder.write("etc/a.service.d/20-b.conf", [])
        #expect(ServiceUnit("a.service", in: places)?.groups == ["audio", "video", "plugdev"])
        try folder.write("etc/a.service", Array("[Service]\n".utf8))
        #expect(ServiceUnit("a.service", in: places)?.user == nil)
        try folder.write(
            "etc/a.service.d/30-c.conf", Array("[Service]\nSupplementaryGroups=camera \\\n  plugdev\nUser=x\n".utf8))
        let continued = ServiceUnit("a.service", in: places)
        #expect(continued?.groups.suffix(2) == ["camera", "plugdev"] && continued?.user == "x")
    }

    @Test("groups have names and numbers")
    func groups() {
        #expect(UserDatabase.shown(group: 0) == "root")
        #expect(UserDatabase.group(named: "root") == 0)
        #expect(UserDatabase.group(named: "7") == 7)
        #expect(UserDatabase.group(named: "no such group") == nil)
        #expect(UserDatabase.groups.contains(UserDatabase.group))
    }
}
