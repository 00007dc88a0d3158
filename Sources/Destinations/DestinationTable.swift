package import Core
package import Credentials
package import Transport

/// One kind of destination: its configuration keys, and the function that makes a destination of this kind.
package struct DestinationDefinition: Sendable {
    package let type: DestinationSchema
    /// Whether its destinations are ``ObjectListing``.
    package let listsObjects: Bool
    /// Whether its destinations are ``UnfinishedListing``.
    package let listsUnfinished: Bool
    /// - Parameter values: Values that were checked against ``type`` already.
    /// - Throws: ``UnusableSettingError`` for a value that only this kind can judge.
    package let make: @Sendable (_ values: [String: SettingValue], _ tools: DestinationTools) throws -> any Destination

    /// - Parameter http: What the kind says about the section `http`; `nil` for one that sends no requests.
    package init<Made: Destination>(
        type: DestinationSchema, http: HTTPUse? = nil,
        make: @escaping @Sendable ([String: SettingValue], DestinationTools) throws -> Made
    ) {
        if let http {
            self.type = type.adding(HTTPSettings.section.setting) { HTTPObjections.find($0, http) }
            self.make = { values, tools in
                if let objection = HTTPObjections.find(values, http).first(where: { !$0.isWarning }) {
                    throw UnusableSettingError(key: objection.key, problem: objection.problem)
                }
                return try make(values, tools.connecting(as: HTTPSettings.read(values)))
            }
        } else {
            self.type = type
            self.make = { try make($0, $1) }
        }
        listsObjects = Made.self is any ObjectListing.Type
        listsUnfinished = Made.self is any UnfinishedListing.Type
    }
}

/// The tools that every destination is given.
package struct DestinationTools: Sendable {
    package var transport: PermittedTransport
    package var secrets: SecretReader
    package var clocks: any Clocks
    /// The destination's name in the configuration, for messages.
    package var name: String
    /// Writes one line to the log. The line contains no secrets.
    package var log: @Sendable (String) -> Void

    /// The section `http`.
    private(set) var http = HTTPSettings()
    /// The credentials that requests have carried for proxies.
    private(set) var proxyCredentials = SentCredentials()

    package init(
        transport: PermittedTransport, secrets: SecretReader, clocks: any Clocks, name: String,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.transport = transport
        self.secrets = secrets
        self.clocks = clocks
        self.name = name
        self.log = log
    }

    /// The same for a destination with these settings.
    func connecting(as http: HTTPSettings) -> DestinationTools {
        var tools = self
        tools.http = http
        tools.proxyCredentials = SentCredentials()
        tools.transport = transport.connecting(
            by: DestinationConnection(http, reader: secrets, remembering: tools.proxyCredentials))
        return tools
    }

    /// The address whose route policy judges.
    func judged(_ url: String) -> JudgedAddress { JudgedAddress(url: WebAddress(url), connection: http.connection) }
}

/// The address whose route decides what requests to a destination cost.
struct JudgedAddress: Sendable {
    fileprivate let url: WebAddress
    fileprivate let connection: ConnectionSettings

    /// The first machine that requests to it are sent to. Found each time: a proxy is on this machine for as long as its
    /// address is, and after a start that may come later than the destination.
    var site: DestinationSite {
        // An address without a host was refused earlier.
        connection.site(of: url) ?? .anywhere
    }
}

/// A value that its type allows but its destination cannot use.
package struct UnusableSettingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The full key, as in `video.name`.
    package let key: String
    package let problem: String
    private var place: Place?

    private struct Place: Hashable {
        /// `file:line:column`.
        let at: String
        let destination: String
    }

    package init(key: String, problem: String) {
        self.key = key
        self.problem = problem
    }

    /// The same error with the place of the value in the configuration.
    package func located(at place: String, in destination: String) -> UnusableSettingError {
        var placed = self
        placed.place = Place(at: place, destination: destination)
        return placed
    }

    package var description: String {
        place.map { "\($0.at): destinations.\($0.destination).\(key): \(problem)" } ?? "`\(key)` \(problem)"
    }
}

/// All kinds of destinations. A new kind is a folder and a line here.
package enum DestinationTable {
    package static let builtIn: [DestinationDefinition] = [
        Tus.kind,
        ResumableHTTP.kind,
        DirectoryDestination.kind,
        ChunkedForm.kind,
        Vimeo.kind,
        S3.kind,
        OSS.kind,
        Apsara.kind,
    ]
}
