package import Core

/// The kernel's data about batteries and power supplies (`/sys/class/power_supply`,
/// Documentation/ABI/testing/sysfs-class-power). Reading may wait for a slow bus inside the machine.
package struct PowerSupplies: Sendable {
    private let root: FilePath

    package init(root: FilePath = "/sys/class/power_supply") { self.root = root }

    /// All of them; empty where there are none, as on most servers.
    ///
    /// - Throws: When the folder exists and cannot be read.
    package func all() throws(SystemError) -> [Power.Supply] {
        let names: [FilePath]
        do { names = try Files.names(in: root) } catch {
            if error.isMissing { return [] }
            throw error
        }
        return names.compactMap { supply($0) }
    }

    private func supply(_ name: FilePath) -> Power.Supply? {
        switch word(name, "type") {
        case "Battery"?, "UPS"?:
            // The battery of a mouse or a headset.
            if word(name, "scope") == "Device" || word(name, "present") == "0" { return nil }
            return .battery(
                isDraining: word(name, "status") == "Discharging", percent: word(name, "capacity").flatMap { Int($0) })
        case .some:
            return word(name, "scope") == "Device"
                ? nil : .outer(isOnline: word(name, "online").map { $0 != "0" } ?? false)
        case nil: return nil
        }
    }

    /// The value of an attribute; `nil` where the driver has none, or does not tell it now.
    private func word(_ name: FilePath, _ attribute: FilePath) -> String? {
        let path = root.appending(name).appending(attribute)
        guard let bytes = try? Files.read(path, limit: 4096) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).first.map(String.init)
    }
}
