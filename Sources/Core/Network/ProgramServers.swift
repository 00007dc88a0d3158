/// The servers that a program with `network: policy` may connect to, through the proxy that it gets.
package struct ProgramServers: Hashable, Sendable {
    /// The ports of servers on the web.
    package static let webPorts: [Int] = [80, 443]

    /// 1 to 65535.
    package var ports: [Int]
    /// Names in lower case, and addresses; empty for every host.
    package var hosts: [String]

    package init(ports: [Int] = webPorts, hosts: [String] = []) {
        self.ports = ports
        self.hosts = hosts
    }
}
