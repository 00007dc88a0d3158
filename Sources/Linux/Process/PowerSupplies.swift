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
        switch attribute(name, "type") {
        case "Battery"?, "UPS"?:
            // The battery of a mouse or a headset.
            if attribute(name, "scope") == "Device" || attribute(name, "present") == "0" { return nil }
            return .battery(
                isDraining: attribute(name, "status") == "Discharging",
                percent: attribute(name, "capacity").flatMap { Int($0) })
        case .some:
            return attribute(name, "scope") == "Device"
                ? nil : .outer(isOnline: attribute(name, "online").map { $0 != "0" } ?? false)
        case nil: return nil
        }
    }

    /// The value of an attribute; `nil` if the driver has none, or does not report it now.
    private func attribute(_ name: FilePath, _ attribute: FilePath) -> String? {
        let path = root.appending(name).appending(attribute)
        guard let bytes = try? Files.read(path, limit: 4096) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).first.map(String.init)
    }
}
