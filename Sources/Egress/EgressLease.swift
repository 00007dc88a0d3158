internal import Core
internal import Linux

/// What one program may connect to.
package struct EgressPermission: Hashable, Sendable {
    /// The work that it is for, for logs: `hook tell`.
    package var name: String
    package var ports: Set<UInt16>
    /// In lower case; `nil` for any host.
    package var hosts: Set<String>?

    package init(name: String, ports: Set<UInt16>, hosts: Set<String>? = nil) {
        self.name = name
        self.ports = ports
        self.hosts = hosts
    }

    /// Why it does not include a server; `nil` when it does.
    func objection(to target: EgressTarget) -> EgressRefusal? {
        guard ports.contains(target.port) else {
            let known = ports.sorted().map { "\($0)" }.joined(separator: ", ")
            return .forbidden("\(name) may not connect to port \(target.port); it may connect to \(known) (`ports`)")
        }
        guard let hosts else { return nil }
        let host =
            switch target.host {
            case .name(let name): name
            case .address(let address): "\(address)"
            }
        return hosts.contains(host) ? nil : .forbidden("\(name) may not connect to \(host)")
    }
}

/// Carries the connections of a lease, as far as policy allows.
package protocol EgressGate: Sendable {
    /// Decides about one connection: either ``EgressConnection/refuse(_:)`` or ``EgressConnection/relay(_:)`` has to be
    /// called. Returns when the connection has ended.
    func carry(_ connection: EgressConnection) async
}

/// The right of one program to use the proxy, for as long as it runs. It ends with ``end()``, or when the last reference
/// is released; its connections are closed then, and its credentials are void.
package final class EgressLease: Sendable {
    /// The port of the proxy on 127.0.0.1.
    package let port: UInt16
    private let login: ProxyLogin
    private let number: Int
    private let loop: EgressLoop

    init(_ permission: EgressPermission, through gate: any EgressGate, in loop: EgressLoop) {
        // 128 and 256 random bits, of characters that need no escape in an address.
        login = ProxyLogin(
            user: Array(hexadecimal(Random.bytes(16)).utf8), password: Array(hexadecimal(Random.bytes(32)).utf8))
        port = loop.port
        self.loop = loop
        number = loop.add(EgressLoop.Tenant(login: login, permission: permission, gate: gate))
    }

    deinit { end() }

    /// Variables of the environment that name the proxy to a program, as `NAME=value`. They contain the credentials.
    ///
    /// Programs agree on these names and on no standard; some know only those in lower case, some only the others.
    package var environment: [String] {
        ["http_proxy", "https_proxy", "all_proxy"].flatMap { ["\($0)=\(address)", "\($0.uppercased())=\(address)"] }
    }

    private var address: String {
        let (user, password) = (
            String(decoding: login.user, as: UTF8.self), String(decoding: login.password, as: UTF8.self)
        )
        return "http://\(user):\(password)@127.0.0.1:\(port)"
    }

    /// A text without the credentials, for what a program has printed.
    package func covered(_ text: String) -> String {
        [login.password, login.user].reduce(text) { text, secret in
            String(decoding: Array(text.utf8).replacing(secret, with: "***".utf8), as: UTF8.self)
        }
    }

    /// Voids the credentials and closes all connections, abortively. Later calls do nothing.
    package func end() { loop.remove(number) }
}

extension ProxyLogin {
    /// Whether both are the same, in a time that does not depend on where they differ.
    func matches(_ other: ProxyLogin) -> Bool {
        // Both are evaluated.
        let (user, password) = (Self.isSame(user, other.user), Self.isSame(password, other.password))
        return user & password == 1
    }

    /// 1 for the same bytes, else 0. The length of the expected bytes is no secret.
    private static func isSame(_ given: [UInt8], _ expected: [UInt8]) -> UInt8 {
        guard given.count == expected.count else { return 0 }
        let difference = zip(given, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
        return difference == 0 ? 1 : 0
    }
}
