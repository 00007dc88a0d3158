internal import Core
package import Linux

/// An event of the kernel's about a device of the class `mem`, without any change of it. Only root can have one made.
package enum DeviceEvent {
    /// Documentation/ABI/testing/sysfs-uevent.
    package static func make() throws(SystemError) {
        let file = try Descriptor.open("/sys/class/mem/null/uevent", for: .updating)
        try file.write(Array("change".utf8), named: "uevent")
    }
}
