/// What a person lets something off for a while.
package enum Excuse: String, Hashable, Sendable, Codable, CaseIterable {
    /// Outside its windows it goes all the same.
    case window
    /// Over a metered network it goes all the same. A network that is not allowed stays so.
    case metered
    /// A quota that is used up does not hold it. It counts all the same.
    case quota
}
