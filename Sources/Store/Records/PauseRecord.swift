package import Core

package struct PauseRecord: Sendable, Hashable {
    /// Open, since a newer program may have stored other scopes.
    package struct Scope: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        package static let all = Scope(rawValue: "all")
        package static let folder = Scope(rawValue: "folder")
        package static let destination = Scope(rawValue: "destination")
        package var isKnown: Bool { [.all, .folder, .destination].contains(self) }
    }
    package var scope: Scope
    /// Empty for `all`.
    package var name: String
    package var since: WallTime
    package var until: WallTime?

    /// Whether it holds every upload. This program cannot tell what a pause of an unknown scope is meant to hold.
    package var holdsEverything: Bool { scope == .all || !scope.isKnown }
    /// Whether it holds what `scope` and `name` say.
    package func holds(_ scope: Scope, _ name: String) -> Bool {
        scope == .all ? holdsEverything : self.scope == scope && self.name == name
    }

    package init(scope: Scope, name: String, since: WallTime, until: WallTime?) {
        self.scope = scope
        self.name = name
        self.since = since
        self.until = until
    }
}
