/// A rule from which a person exempts uploads for a while.
package enum Exemption: String, Hashable, Sendable, Codable, CaseIterable {
    /// Uploads outside the windows are allowed.
    case window
    /// Uploads over a metered network are allowed. A forbidden network stays forbidden.
    case metered
    /// An exhausted quota holds nothing. Usage is still counted.
    case quota
    /// Uploads that a rule under `pause` describes are allowed, unless the rule says `override: never`.
    case rule
}
