internal import CLinux
internal import Core
internal import Glibc

/// Facts about network interfaces from sysfs and drivers (Documentation/ABI/testing/sysfs-class-net).
struct LinkDevices {
    /// One interface. Empty where nothing is visible, as in a container without `/sys`.
    struct Device: Hashable {
        var type: String?
        var driver: String?
        var isReal = false
        var isOnUSB = false
        var isWireless = false
        /// The names of the interfaces below.
        var lower: [FilePath] = []
    }

    private let root: FilePath

    init(root: FilePath = "/sys/class/net") { self.root = root }

    func device(named name: FilePath, index: Int32) -> Device {
        var device = inSysfs(name, index) ?? Device()
        // The driver answers also where /sys belongs to another container. It answers for virtual interfaces too, whose
        // kind is known otherwise; so only an interface with a place on a bus counts.
        if !device.isReal, let told = byDriver(name) {
            device.driver = device.driver ?? told.driver
            device.isOnUSB = device.isOnUSB || told.bus.hasPrefix("usb-")
        }
        return device
    }

    private func inSysfs(_ name: FilePath, _ index: Int32) -> Device? {
        // The kernel refuses such names, and a path made from one would lead elsewhere.
        guard !name.isEmpty, name != ".", name != "..", name.components.count == 1 else { return nil }
        let folder = root.appending(name)
        // /sys shows the interfaces of the namespace that mounted it, and one with the same name may be another one.
        guard text(folder.appending("ifindex")) == "\(index)", let names = try? Files.names(in: folder) else {
            return nil
        }
        var device = Device()
        device.type = uevent(folder)
        device.driver = Files.linkTarget(folder.appending("device/driver")).map(\.name.display)
        device.isReal = names.contains("device")
        device.isWireless = device.type == "wlan" || names.contains("phy80211") || names.contains("wireless")
        // `…/usb2/2-1/2-1:1.0/net/usb0`
        device.isOnUSB = (Files.linkTarget(folder)?.components ?? []).contains { isBus($0) }
        let start = Array("lower_".utf8)
        device.lower = names.filter { $0.bytes.starts(with: start) }.map {
            FilePath(bytes: $0.bytes.dropFirst(start.count))
        }
        return device
    }

    /// `usb` and the number of a bus.
    private func isBus(_ name: FilePath) -> Bool {
        name.bytes.count > 3 && name.bytes.starts(with: Array("usb".utf8))
            && name.bytes.dropFirst(3).allSatisfy(\.isDigit)
    }

    private func uevent(_ folder: FilePath) -> String? {
        // Interfaces may disappear meanwhile.
        guard let bytes = try? Files.read(folder.appending("uevent")) else { return nil }
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: Array("DEVTYPE=".utf8)) {
            return printable(String(decoding: line.dropFirst(8), as: UTF8.self))
        }
        return nil
    }

    private func text(_ path: FilePath) -> String? {
        guard let bytes = try? Files.read(path) else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private func byDriver(_ name: FilePath) -> (driver: String, bus: String)? {
        var driver = [CChar](repeating: 0, count: 32)
        var bus = [CChar](repeating: 0, count: 32)
        guard name.withCString({ sluice_link_driver($0, &driver, &bus) }) == 0 else { return nil }
        let texts = [driver, bus].map { text in
            printable(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        // Virtual interfaces answer with an empty text, `tap`, or `N/A`.
        let hasPlace = texts[1].contains(":") || texts[1].contains(".") || texts[1].hasPrefix("usb-")
        return hasPlace && !texts[0].isEmpty ? (texts[0], texts[1]) : nil
    }
}
