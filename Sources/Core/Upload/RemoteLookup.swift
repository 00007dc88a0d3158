/// The remote's answer about a file that it may hold already.
package enum RemoteLookup: Hashable, Sendable {
    /// The same content under the same name, according to its digest.
    case found(RemoteObject)
    case absent
    /// This kind of remote has no such query; contains the reason, for a person.
    case unknown(String)
}
