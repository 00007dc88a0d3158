internal import Core
package import Linux

/// A kernel event about a device of the class `mem`, without any change of the device. Only root can trigger one.
package enum DeviceEvent {
    /// Documentation/ABI/testing/sysfs-uevent.
    package static func make() throws(SystemError) {
        let file = try Descriptor.open("/sys/class/mem/null/uevent", for: .updating)
        try file.write(Array("change".utf8), named: "uevent")
    }
}
