internal import Core
internal import Transport

/// A refusal of the API, and its remedy.
///
/// The numbers are those of the service's API description (version 3.4) and of its own client libraries; where they
/// differ, the description counts. A number may stand in the body (`error_code`), in a header (`Vimeo-Error-Code`), or
/// both.
struct VimeoVerdict: Sendable {
    var remedy: Remedy
    /// The failure code for scripts: `vimeo_4102`, or the status where there is no number.
    var code: Failure.Code
    /// The message, with the field that it is about.
    var words: String
    /// The error numbers, the body's first.
    var numbers: [Int64]
    /// The size of the file is refused.
    let isOfSize: Bool

    /// - Parameter wait: Returns the duration of a `rate_limit` hold.
    init(_ response: Response, wait: (Response) -> Duration) {
        let body = JSONValue.read(response.body)
        let header = response.headers["Vimeo-Error-Code"].flatMap { Int64($0) }
        let field = body?["invalid_parameters"]?.items.first
        numbers = [body?["error_code"]?.whole, body?["VimeoErrorCode"]?.whole, header, field?["error_code"]?.whole]
            .compactMap { $0 }
        let name = field?["field"]?.text
        isOfSize = numbers.contains(2254) || name == "size" || name?.hasSuffix(".size") == true
        code = numbers.first.map { .vimeo($0) } ?? .http(response.status)
        words = Self.words(body, field)
        remedy =
            response.status == 429
            ? .rateLimit(after: wait(response))
            : numbers.lazy.compactMap { Self.remedies[$0] }.first ?? Self.byStatus(response)
    }

    private static func words(_ body: JSONValue?, _ field: JSONValue?) -> String {
        let message = body?["developer_message"]?.text ?? body?["error"]?.text ?? body?["error_description"]?.text ?? ""
        guard let field, let name = field["field"]?.text else { return message }
        let more = field["developer_message"]?.text ?? field["error"]?.text ?? ""
        return message + (message.isEmpty ? "" : " ") + "(\(name): \(more))"
    }

    /// The remedy without an error number.
    private static func byStatus(_ response: Response) -> Remedy {
        switch response.status {
        case 401, 403: .authenticate
        case 408, 425, 500...: .holdDestination(after: retryAfter(response.headers, now: WallTime(milliseconds: 0)))
        case 404, 405, 410, 300..<400: .misconfigured
        case let status where IntermediaryStatus.all.contains(status): .holdDestination(after: nil)
        default: .failUpload
        }
    }

    /// Numbers that say more than the status.
    static let remedies: [Int64: Remedy] = {
        var table: [Int64: Remedy] = [:]
        func put(_ remedy: Remedy, _ numbers: Int64...) { for number in numbers { table[number] = remedy } }
        // The account's storage, its quota of the period, its number of videos.
        put(.outOfSpace(after: nil), 4101, 4102, 4103, 4104)
        // This file is larger than the whole quota.
        put(.failUpload, 3428)
        // The upload approach is not offered (any more), or the version is missing.
        put(.misconfigured, 2230, 2552, 3116)
        // The video's fields are invalid, or not allowed for this account.
        put(.failUpload, 2205, 2231, 2232, 2233, 2234, 2235, 2236, 2237, 2238, 2239, 2240, 2241, 2242, 2243, 2244, 2245)
        put(.failUpload, 2246, 2247, 2248, 2249, 2250, 2251, 2252, 2254, 2273, 2409, 2410, 2411, 2412, 2500, 2502, 3427)
        put(.failUpload, 5011, 5012, 5013)
        // A person has to check the account or the token: its e-mail, its credentials, no user behind it.
        put(.authenticate, 3400, 8000, 8001, 8002, 8003)
        put(.holdDestination(after: nil), 1006, 4003, 4011, 7000, 7100)
        return table
    }()

    /// The streaming approaches are disabled. A person can resolve this.
    var isOfFlow: Bool { numbers.contains(2552) || numbers.contains(3116) || numbers.contains(2230) }
    /// The ticket of a four-step upload was used up, or belongs to another account.
    var isDeadTicket: Bool { [5006, 5007, 8400].contains { numbers.contains($0) } }
    /// The quota is used up.
    var isFull: Bool { if case .outOfSpace = remedy { true } else { false } }
}
