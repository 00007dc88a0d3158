internal import API
internal import Core

/// The names of folders and destinations that a request may contain.
struct KnownNames: Hashable {
    var folders: [String]
    var destinations: [String]
    /// For each folder whose path is a pattern, the folders of its cards.
    var patterns: [String: [String]] = [:]

    /// Names in one message. There may be a thousand cards.
    private static let mostListed = 40

    /// A misspelt name must not look as if there were nothing to do.
    ///
    /// - Throws: ``Refusal`` for a name that is not configured.
    func require(folder: String?, destination: String?) throws(Refusal) {
        try requireNoPattern(folder)
        try Self.require("folder", folder, folders)
        try Self.require("destination", destination, destinations)
    }

    /// - Throws: ``Refusal`` for a folder that has no files itself, since its cards have them.
    func requireNoPattern(_ folder: String?) throws(Refusal) {
        if let folder, let cards = patterns[folder], !folders.contains(folder) {
            throw Refusal(
                .notFound,
                "`\(folder)` stands for a folder on each card, "
                    + (cards.isEmpty ? "and no card was mounted yet" : "so name one of these: \(Self.list(cards))"))
        }
    }

    private static func require(_ what: String, _ name: String?, _ known: [String]) throws(Refusal) {
        guard let name, !known.contains(name) else { return }
        let near = closest(to: name, among: known).map { "did you mean `\($0)`?" }
        throw Refusal(.notFound, "no \(what) is called `\(name)`: " + (near ?? list(known)))
    }

    private static func list(_ names: [String]) -> String {
        names.prefix(mostListed).joined(separator: ", ")
            + (names.count > mostListed ? " and \(names.count - mostListed) more" : "")
    }
}
