package import API

/// The JSON form of an error: `{"error": {"code", "message", "id"}}`. The code is text, since a newer daemon may have
/// more codes.
struct ErrorReply: Codable {
    struct Content: Codable {
        var code: String
        var message: String
        var id: String?
    }

    var error: Content

    init(code: String, message: String, id: String? = nil) {
        error = Content(code: code, message: message, id: id)
    }

    init(_ refusal: Refusal) { self.init(code: refusal.code.rawValue, message: refusal.message, id: refusal.id) }
}

extension Refusal.Code {
    /// The HTTP status for it.
    package var status: Int {
        switch self {
        case .badRequest: 400
        case .forbidden: 403
        case .notFound: 404
        case .ambiguous, .conflict, .duplicate, .sourceMissing: 409
        case .destination: 502
        case .unavailable: 503
        case .noRoom: 507
        }
    }
}
