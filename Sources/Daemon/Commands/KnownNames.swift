internal import API
internal import Core

/// The names of folders and destinations that a request may contain.
struct KnownNames: Hashable {
    var folders: [String]
    var destinations: [String]

    /// A misspelt name must not look as if there were nothing to do.
    ///
    /// - Throws: ``Refusal`` for a name that is not configured.
    func require(folder: String?, destination: String?) throws(Refusal) {
        try Self.require("folder", folder, folders)
        try Self.require("destination", destination, destinations)
    }

    private static func require(_ what: String, _ name: String?, _ known: [String]) throws(Refusal) {
        guard let name, !known.contains(name) else { return }
        let near = closest(to: name, among: known).map { "did you mean `\($0)`?" }
        throw Refusal(.notFound, "no \(what) is called `\(name)`: " + (near ?? known.joined(separator: ", ")))
    }
}
