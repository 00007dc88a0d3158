import Core
import TestKit
import Testing

@testable import Linux

/// Sysfs data in an artificial folder.
@Suite("The hardware behind an interface")
struct LinkDevicesTests {
    private let folder = TemporaryFolder()
    private var root: FilePath { folder.path.appending("class/net") }

    /// Like `/sys/class/net/NAME`, which is a link to the device.
    private func add(
        _ name: FilePath, at place: FilePath, index: Int = 7, type: String? = nil, driver: FilePath? = nil,
        more: [FilePath] = []
    ) throws {
        let target = folder.path.appending("devices").appending(place).appending("net").appending(name)
        try Files.makeFolders(target)
        let relative = try #require(target.relative(to: folder.path))
        try folder.write(relative.appending("ifindex"), Array("\(index)\n".utf8))
        let uevent = "\(type.map { "DEVTYPE=\($0)\n" } ?? "")INTERFACE=\(name.display)\nIFINDEX=\(index)\n"
        try folder.write(relative.appending("uevent"), Array(uevent.utf8))
        if let driver {
            let device = folder.path.appending("devices").appending(place)
            #expect(makeLink(to: FilePath("../../../bus/drivers").appending(driver), at: device.appending("driver")))
            #expect(makeLink(to: device, at: target.appending("device")))
        }
        for entry in more { try Files.makeFolders(target.appending(entry)) }
        try Files.makeFolders(root)
        #expect(makeLink(to: target, at: root.appending(name)))
    }

    private func device(_ name: FilePath, _ index: Int32 = 7) -> LinkDevices.Device {
        LinkDevices(root: root).device(named: name, index: index)
    }

    @Test("the device has its driver, its uevent name, and whether it is on USB")
    func modem() throws {
        try add(
            "sluicewwan", at: "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.4", type: "wwan", driver: "qmi_wwan")
        let found = device("sluicewwan")
        #expect(found.type == "wwan")
        #expect(found.driver == "qmi_wwan")
        #expect(found.isReal)
        #expect(found.isOnUSB)
        #expect(!found.isWireless)
    }

    @Test("a network card is not on USB, whatever the names in its path")
    func card() throws {
        try add("sluicecard", at: "usbhub/usb/usb2x", driver: "virtio_net")
        #expect(!device("sluicecard").isOnUSB)
        #expect(device("sluicecard").isReal)
    }

    @Test("Wi-Fi is recognised by its type or by its folder")
    func wireless() throws {
        try add("sluicewl0", at: "platform/a", type: "wlan")
        try add("sluicewl1", at: "platform/b", more: ["phy80211"])
        #expect(device("sluicewl0").isWireless)
        #expect(device("sluicewl1").isWireless)
    }

    @Test("lower interfaces are found by the names of their links")
    func lower() throws {
        try add("sluicebr", at: "virtual", type: "bridge", more: ["lower_eth0", "lower_wlan0.7", "upper_x", "queues"])
        let found = device("sluicebr")
        #expect(Set(found.lower) == ["eth0", "wlan0.7"])
        #expect(!found.isReal)
        #expect(found.driver == nil)
    }

    @Test("the same name with another number is another interface")
    func other() throws {
        try add("sluicewwan", at: "usb2", index: 8, type: "wwan", driver: "qmi_wwan")
        #expect(device("sluicewwan") == LinkDevices.Device())
        #expect(device("nothing") == LinkDevices.Device())
        for name: FilePath in ["", ".", "..", "a/b", "../net"] { #expect(device(name) == LinkDevices.Device()) }
    }
}
