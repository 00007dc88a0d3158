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
    ///
    /// - Returns: The address that is given for them.
    @discardableResult
    func checkRequests(
        _ headers: [String: String], url: String?, uploadURL: String? = nil, for destinations: [String]
    ) throws -> GivenURL? {
        try checkHeaders(headers, for: destinations)
        let given: GivenURL?
        switch (url, uploadURL) {
        case (nil, nil): given = nil
        case (let url?, nil): given = .creation(url)
        case (nil, let url?): given = .upload(url)
        case (.some, .some):
            throw Refusal(
                .badRequest, "`url` creates an upload, and `upload_url` is of one that exists: give one of them")
        }
        guard let given else { return nil }
        if given.upload != nil, Set(destinations).count > 1 {
            throw Refusal(
                .badRequest,
                "`upload_url` is the address of one upload: name one destination of \(destinations.joined(separator: ", "))"
            )
        }
        for name in destinations {
            guard let destination = configuration.destinations[name] else { continue }
            let (key, objection) =
                switch given {
                case .creation(let url): ("url", destination.objection(toURL: url))
                case .upload(let url): ("upload_url", destination.objection(toUploadURL: url))
                }
            if let objection { throw Refusal(.badRequest, "`\(key)` cannot be used with `\(name)`: \(objection)") }
        }
        return given
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
