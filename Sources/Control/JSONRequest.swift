internal import API
internal import Core

/// Reads the JSON body of a request.
enum JSONRequest {
    static func read<T: Decodable>(_ type: T.Type, _ body: [UInt8]) throws -> T {
        do { return try JSON.value(type, from: body) } catch let error as DecodingError {
            throw Refusal(.badRequest, "the body is not valid for this path: \(explain(error))")
        }
    }

    private static func explain(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.map(\.stringValue).joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, _): return "`\(printable(key.stringValue))` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            let place = place(context)
            return place.isEmpty ? "it is not a JSON object" : "`\(printable(place))` has the wrong type"
        case .dataCorrupted(let context):
            let place = place(context)
            return place.isEmpty ? "it is not JSON" : "`\(printable(place))` has an invalid value"
        @unknown default: return "it cannot be read"
        }
    }
}
