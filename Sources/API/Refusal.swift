/// A request that the daemon cannot fulfil, with the HTTP status and the code that the command line turns into its exit
/// status.
package struct Refusal: Error, Codable, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Codable, Sendable, Hashable {
        /// 404: no such id. Exit 66.
        case notFound = "not_found"
        /// 409 with the candidates in the message. Exit 66.
        case ambiguous
        /// 409: the state does not allow it. Exit 65.
        case conflict
        /// 409: the history contains it as uploaded. Exit 65.
        case duplicate
        /// 409: neither source nor staged copy is left. Exit 65.
        case sourceMissing = "source_missing"
        /// 400. Exit 64.
        case badRequest = "bad_request"
        /// 403: this user may read but not change anything. Exit 75.
        case forbidden
        /// 502: the destination refused the request, or could not be reached. Exit 76.
        case destination
        /// 507: no space for the bytes that are handed over. Exit 75.
        case noRoom = "no_room"
        /// 503: not while starting, or the state cannot be written. Exit 75.
        case unavailable
    }

    package var code: Code
    package var message: String
    /// The id of the upload that it concerns, if any.
    package var id: String?

    package init(_ code: Code, _ message: String, id: String? = nil) {
        self.code = code
        self.message = message
        self.id = id
    }

    package var description: String { message }
}
