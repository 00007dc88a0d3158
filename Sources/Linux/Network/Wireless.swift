internal import Core
internal import Glibc

/// The Wi-Fi network of each interface, from the kernel's wireless stack (generic netlink, linux/nl80211.h). Needs no
/// privileges.
enum Wireless {
    struct Name: Hashable {
        /// `nil` when it is in none, or the kernel is too old to report it.
        var ssid: [UInt8]?
    }

    /// All Wi-Fi interfaces, by number. Empty on a machine without any, and if the kernel does not report it.
    static func names() -> [Int32: Name] {
        // Only a rule about a name depends on it, and does not match then.
        guard let socket = try? NetlinkSocket(Netlink.generic), let family = family("nl80211", by: socket),
            let answer = try? socket.query(
                NetlinkRequest(family, dump: true, header: header(Command.getInterface)), about: "Wi-Fi")
        else { return [:] }
        var names: [Int32: Name] = [:]
        for message in answer where message.type == family {
            if let (link, name) = name(in: message) { names[link] = name }
        }
        return names
    }

    /// The number of a family of messages, which the kernel assigns as its parts are loaded; `nil` when it has none
    /// with that name.
    static func family(_ name: String, by socket: borrowing NetlinkSocket) -> UInt16? {
        var question = NetlinkRequest(control, header: header(Command.getFamily))
        question.add(2, Array(name.utf8) + [0])
        guard let answer = try? socket.query(question, about: name) else { return nil }
        return answer.lazy.compactMap { $0.attributes(after: headerSize).number(1, as: UInt16.self) }.first
    }

    /// The contents of a message about a wireless interface.
    static func name(in message: NetlinkMessage) -> (link: Int32, name: Name)? {
        guard message.body.first == Command.newInterface else { return nil }
        let attributes = message.attributes(after: headerSize)
        guard let link = attributes.number(3, as: Int32.self) else { return nil }
        // At most 32 bytes (IEEE 802.11); an empty one hides the name.
        let ssid = attributes[52].map { Array($0) }
        return (link, Name(ssid: ssid?.isEmpty == false ? ssid : nil))
    }

    private enum Command {
        static let getFamily: UInt8 = 3
        static let getInterface: UInt8 = 5
        static let newInterface: UInt8 = 7
    }

    /// `GENL_ID_CTRL`.
    private static let control: UInt16 = 0x10
    /// `struct genlmsghdr`.
    private static let headerSize = 4
    private static func header(_ command: UInt8) -> [UInt8] { [command, 1, 0, 0] }
}
