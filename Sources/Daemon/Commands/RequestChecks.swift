internal import API
internal import Config
internal import Core
internal import Destinations

/// Checks the options of a request for new uploads against the configuration.
struct RequestChecks: Sendable {
    let configuration: RuntimeConfiguration

    func checkOptions(to destinations: [String], key: String?, context: [String: String]) throws {
        for name in destinations where configuration.destinations[name] == nil {
            let known = configuration.settings.destinations.map(\.name)
            throw Refusal(
                .badRequest,
                "no destination is called `\(printable(name))`: "
                    + (closest(to: name, among: known).map { "did you mean `\($0)`?" } ?? known.joined(separator: ", "))
            )
        }
        if let problem = contextProblem(context) { throw Refusal(.badRequest, "`context` \(problem)") }
        if let key, key.isEmpty || key.utf8.count > 1024 { throw Refusal(.badRequest, "a key has 1 to 1024 bytes") }
    }

    /// Checks the settings for the requests of these uploads.
    func checkRequests(_ headers: [String: String], url: String?, for destinations: [String]) throws {
        try checkHeaders(headers, for: destinations)
        guard let url else { return }
        for destination in destinations {
            if let objection = configuration.destinations[destination]?.objection(toURL: url) {
                throw Refusal(.badRequest, "`url` cannot be used with `\(destination)`: \(objection)")
            }
        }
    }

    /// The values may be secrets, and appear in no message.
    private func checkHeaders(_ headers: [String: String], for destinations: [String]) throws {
        if headers.isEmpty { return }
        func refuse(_ problem: String) -> Refusal { Refusal(.badRequest, "`headers` \(problem)") }
        if headers.count > 16 { throw refuse("takes at most 16 names, not \(headers.count)") }
        if Set(headers.keys.map { $0.lowercased() }).count < headers.count {
            throw refuse("has a name twice; upper and lower case are the same")
        }
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            // RFC 9110, sections 5.1 and 5.6.2: a name is a token. Of values only those that all recipients read in the
            // same way.
            guard isToken(name), (1...64).contains(name.utf8.count) else {
                throw refuse(
                    "takes names of 1 to 64 letters, digits and `-`, not `\(printable(String(name.prefix(70))))`")
            }
            guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }), !value.hasPrefix(" "), !value.hasSuffix(" ") else {
                throw refuse("takes printable ASCII without space around it; the value of `\(name)` is not")
            }
            if value.utf8.count > 4096 { throw refuse("takes values of at most 4 KiB; that of `\(name)` is longer") }
            for destination in destinations {
                if let objection = configuration.destinations[destination]?.objection(toHeader: name) {
                    throw refuse("cannot be used with `\(destination)`: \(objection)")
                }
            }
        }
    }
}
