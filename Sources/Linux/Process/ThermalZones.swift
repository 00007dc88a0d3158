package import Core

/// The kernel's temperature sensors (`/sys/class/thermal`, Documentation/ABI/testing/sysfs-class-thermal). Reading may
/// wait for a slow bus inside the machine.
package struct ThermalZones: Sendable {
    private let root: FilePath

    package init(root: FilePath = "/sys/class/thermal") { self.root = root }

    /// The temperature of the hottest zone, in whole degrees Celsius, rounded up; `nil` where none can be read. Zones
    /// that fail, as that of a Wi-Fi that is switched off, are left out.
    package var hottest: Int? {
        guard let names = try? Files.names(in: root) else { return nil }
        return names.compactMap { degrees($0) }.max()
    }

    private func degrees(_ name: FilePath) -> Int? {
        guard name.bytes.starts(with: Array("thermal_zone".utf8)),
            let bytes = try? Files.read(root.appending(name).appending("temp"), limit: 4096),
            let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first,
            // Thousandths of a degree. Drivers that have no value report one below absolute zero.
            let thousandths = Int(text), (-273_000...1_000_000).contains(thousandths)
        else { return nil }
        return thousandths > 0 ? (thousandths + 999) / 1000 : thousandths / 1000
    }
}
