internal import Core
internal import Synchronization
internal import Transport

/// Bytes by PUT with `Content-Range` (RFC 9110, section 14.4) to the address of one upload. The question for the offset
/// is the same request without bytes, answered with 308 and `Range`.
///
/// 308 is no redirect here. It had this meaning before RFC 7538 made it a redirect, and the services that use it have
/// kept it.
struct ContentRange: Sendable {
    /// The meaning of the number in `Range: bytes=0-N`.
    enum Meaning: Sendable {
        /// The last byte that the remote has, as in RFC 9110.
        case lastByte
        /// The number of bytes that the remote has. Some services are inconsistent. Then the smaller reading is used,
        /// which repeats a byte rather than lose one.
        case count(RangeSemantics)
    }

    /// The meaning of 200 and 201 as answers to bytes.
    enum Success: Sendable {
        /// The file is complete.
        case ofFile
        /// These bytes were accepted.
        case ofPiece
    }

    let client: AuthorizedClient
    let limits: RequestLimits
    var meaning: Meaning
    var success: Success
    /// Each request except the last carries a multiple of it.
    var alignment: Int64 = 1

    /// Asks for the offset of the upload at `url`.
    func locate(
        _ url: String, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ context: RequestContext
    ) async throws -> Position {
        let size = order.file.size
        let response: Response
        do {
            response = try await client.send(
                Request(
                    "PUT", url, headers: [("Content-Range", "bytes */\(size)"), ("Content-Length", "0")],
                    body: .bytes([]), limits: limits.small), context
            ).response
        } catch let error as AuthorizedClient.NoAnswerError { throw error.error }
        switch response.status {
        case 308: return position(response, size, &checkpoint)
        // A portal answers every request with a page: it says nothing about the file.
        case 200 where response.isWebPage, 201 where response.isWebPage:
            throw refused(response, "the lookup of its offset", .misconfigured)
        case 200, 201: return .at(size)
        case 404, 410: return .gone(isCertain: false)
        // Google's status for an upload that was cancelled.
        case 499: return .gone(isCertain: true)
        case 400: return .doubtful(refused(response, "the lookup of its offset", .retry(after: nil)))
        default: throw refused(response, "the lookup of its offset", remedy(response))
        }
    }

    private func position(_ response: Response, _ size: Int64, _ checkpoint: inout OffsetCheckpoint) -> Position {
        guard let range = response.headers["Range"] else { return .at(0) }
        guard let number = Self.lastNumber(range) else {
            return .doubtful(
                UploadError(
                    client.failure(
                        .protocol, .noOffset, "an answer whose Range is not a range of bytes", http: 308,
                        retryable: true
                    ),
                    remedy: .retry(after: nil)))
        }
        let offset = offset(number, size, checkpoint)
        return offset > size ? .foreign("it holds \(offset) bytes, and the file has \(size)") : .at(offset)
    }

    private func offset(_ number: Int64, _ size: Int64, _ checkpoint: OffsetCheckpoint) -> Int64 {
        switch meaning {
        case .lastByte: return number < .max ? number + 1 : number
        case .count(let habit):
            // The last byte was sent again and accepted, and the number has not changed: so it is the number of the
            // last byte.
            if number == size - 1, checkpoint.wasLastByteAlone { habit.isLastByte = true }
            return habit.isLastByte && number < size ? number + 1 : number
        }
    }

    func send(
        _ range: Range<Int64>, to url: String, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint,
        past digest: SentDigest, _ context: RequestContext,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        let count = range.upperBound - range.lowerBound
        var request = Request(
            "PUT", url,
            headers: [
                ("Content-Type", order.mediaType),
                ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(order.file.size)"),
            ], body: .file(order.file.place, offset: range.lowerBound, count: count, check: digest),
            limits: limits.sending)
        request.allowsExpectContinue = false
        let carried = await client.sendBody(request, context, sent: sent)
        switch carried.result {
        case .failure(let error): return SendResult(.failed(error), carried)
        case .success(let answer):
            return SendResult(judge(answer.response, range, order.file.size, &checkpoint), carried)
        }
    }

    private func judge(
        _ response: Response, _ range: Range<Int64>, _ size: Int64, _ checkpoint: inout OffsetCheckpoint
    ) -> SendResult.Answer {
        func refusal(_ remedy: Remedy) -> UploadError { refused(response, "bytes", remedy) }
        let isLastByteAlone = range.lowerBound == size - 1 && range.upperBound == size
        switch response.status {
        case 200 where response.isWebPage, 201 where response.isWebPage:
            return .status(refusal(.misconfigured), again: 0)
        case 200, 201:
            if isLastByteAlone { checkpoint.wasLastByteAlone = true }
            switch success {
            case .ofPiece: return .accepted(range.upperBound)
            case .ofFile where range.upperBound == size: return .accepted(size)
            case .ofFile: return .status(refusal(.retry(after: nil)), again: 1)
            }
        case 308:
            if isLastByteAlone { checkpoint.wasLastByteAlone = true }
            guard response.headers["Range"] != nil, case .at(let offset) = position(response, size, &checkpoint) else {
                return .status(
                    client.refused("bytes", response, .retry(after: nil), words: "it does not report its offset"),
                    again: 2)
            }
            return .accepted(offset)
        case 400, 416: return .status(refusal(.failUpload), again: 1)
        case 401, 403: return .status(refusal(.authenticate), again: 1)
        case 404, 410, 499: return .status(refusal(.retry(after: nil)), again: 0)
        case 413: return .tooMuch(refusal(.failUpload))
        case let status where IntermediaryStatus.all.contains(status):
            return .status(refusal(remedy(response)), again: 0)
        default: return .failed(refusal(remedy(response)))
        }
    }

    /// The remedy for a status that says nothing about the upload's offset, at a host that only accepts bytes.
    func remedy(_ response: Response) -> Remedy {
        let wait = retryAfter(response.headers, now: client.clocks.wall())
        switch response.status {
        case 401, 403: return .authenticate
        case 407: return .holdDestination(after: nil)
        case 408, 409, 425: return .retry(after: wait)
        case 429: return .rateLimit(after: wait)
        case 507: return .outOfSpace(after: wait)
        case 500...: return .holdDestination(after: wait)
        case 300..<400, 405, 411, 415: return .misconfigured
        case let status where IntermediaryStatus.all.contains(status): return .holdDestination(after: wait)
        default: return .failUpload
        }
    }

    func refused(_ response: Response, _ what: String, _ remedy: Remedy) -> UploadError {
        client.refused(what, response, remedy)
    }

    /// Reads `bytes=0-42` and similar forms: the number after the last dash.
    private static func lastNumber(_ range: String) -> Int64? {
        range.split(separator: "-", omittingEmptySubsequences: false).last.flatMap {
            plainInteger(String($0.filter { $0 != " " }))
        }
    }
}

/// The observed meaning of `Range` at a service, shared by all uploads of a destination.
final class RangeSemantics: Sendable {
    private let state = Atomic(false)

    var isLastByte: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
