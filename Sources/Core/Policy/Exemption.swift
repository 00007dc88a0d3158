/// A rule from which a person exempts uploads for a while.
package enum Exemption: RawRepresentable, Hashable, Sendable {
    /// Uploads outside the windows are allowed.
    case window
    /// Uploads over a metered network are allowed. A forbidden network stays forbidden.
    case metered
    /// An exhausted quota holds nothing. Usage is still counted.
    case quota
    /// Uploads that rules describe are allowed, unless a rule says `override: never`: rules under `pause`, `windows`
    /// and `metered: pause`.
    case rule
    /// The same for the rules of this name alone.
    case ruleNamed(String)

    /// Those that need no name.
    package static let kinds: [Exemption] = [.window, .metered, .quota, .rule]

    private static let prefix = "rule:"

    package init?(rawValue word: String) {
        if let kind = Self.kinds.first(where: { $0.rawValue == word }) {
            self = kind
        } else if word.hasPrefix(Self.prefix) {
            self = .ruleNamed(String(word.dropFirst(Self.prefix.count)))
        } else {
            return nil
        }
    }

    package var rawValue: String {
        switch self {
        case .window: "window"
        case .metered: "metered"
        case .quota: "quota"
        case .rule: "rule"
        case .ruleNamed(let name): Self.prefix + name
        }
    }
}
