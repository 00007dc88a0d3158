/// The location of a destination, as far as the network matters.
package enum DestinationSite: Hashable, Sendable {
    /// On this machine, whatever its address.
    case here
    /// The first machine to which bytes are sent: the server, or the proxy before it.
    case server(host: String, port: UInt16, family: AddressFamily = .any)
    /// A folder, which may be on another machine, and the configured cost of bytes to it.
    case folder(FilePath, cost: Metered?)
    /// A server whose addresses are known.
    case addresses([IPAddress], port: UInt16)
    /// Any server: it is known when something connects to it.
    case anywhere
}

extension DestinationSite {
    /// Bytes to it are reported, because no socket counts them.
    package var isFolder: Bool { if case .folder = self { true } else { false } }

    /// Whether sockets of this program lead to it.
    package var isOverNetwork: Bool {
        switch self {
        case .here, .folder: false
        case .server, .addresses, .anywhere: true
        }
    }
}

/// How bytes to a destination would leave this machine now.
package enum Reachability: Hashable, Sendable {
    /// They stay on this machine.
    case local
    /// By some route. It was not looked up, because no rule depends on it.
    case any
    /// By one of these. First the kernel's own choice, best first; then the alternatives.
    case over([NetworkPath])
    /// Through a folder of another machine, by routes that cannot be seen. `text` says which folder.
    case mount(Metered, text: String)
    /// Over a network that a person describes.
    case described(DescribedNetwork)
    /// There is no route.
    case offline(String)
    /// The routes could not be looked up; contains the reason.
    case unseen(String)
}
