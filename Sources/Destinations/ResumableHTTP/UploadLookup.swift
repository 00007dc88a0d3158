internal import Core
internal import Transport

/// The answer to the question where an upload stands.
struct UploadLookup: Sendable {
    let position: Position
    let fields: UploadFields
    /// The upload's address, after permanent redirects.
    let url: String
    /// The version with which the server answered; `nil` without a usable answer.
    let version: InteropVersion?
}

extension ResumableHTTPDialect {
    /// Asks where the upload stands. A server that does not understand the version of the draft is asked with another
    /// one: the question changes nothing there.
    ///
    /// - Parameter first: The version with which it has answered before.
    func look(at url: String, of size: Int64, _ first: InteropVersion?) async throws -> UploadLookup {
        var refusal: UploadError?
        var tried: [InteropVersion] = []
        while let version = server.interop.next(after: tried, first: first) {
            tried.append(version)
            let answer = try await requests.follow(
                Request("HEAD", url, headers: version.headers, limits: settings.limits.small))
            let response = answer.response
            let fields = UploadFields(response.headers)
            func found(_ position: Position, _ version: InteropVersion? = nil) -> UploadLookup {
                UploadLookup(position: position, fields: fields, url: answer.url, version: version)
            }
            func refused(_ remedy: Remedy) -> UploadError {
                client.refused("the lookup of its offset", response, remedy)
            }
            switch server.verdict(.HEAD, response, to: version) {
            case .success:
                guard let offset = fields.offset else {
                    // 200 without a header of the draft comes from a portal or a proxy, or from a server that speaks
                    // another version.
                    let remedy: Remedy = fields.isOfDraft ? .retry(after: nil) : .misconfigured
                    let error = UploadError(
                        failure(
                            .protocol, .noOffset,
                            "\(client.host(response.url)) answered \(response.status) without a usable Upload-Offset",
                            retryable: true),
                        remedy: remedy)
                    if fields.isOfDraft { throw error }
                    refusal = refusal ?? error
                    continue
                }
                server.interop.recordSpoken(version)
                return found(position(offset, fields, size), version)
            case .gone: return found(.gone(isCertain: fields.isOfDraft))
            case .doubtful: return found(.doubtful(refused(.retry(after: nil))))
            case .otherVersion: refusal = refused(.misconfigured)
            case .stop(let remedy): throw refused(remedy)
            default: throw refused(.retry(after: nil))
            }
        }
        throw refusal
            ?? UploadError(
                failure(.config, .noOffset, "there is no version of the draft to ask with", retryable: true),
                remedy: .misconfigured)
    }

    /// The rules for a usable answer, in this order.
    private func position(_ offset: Int64, _ fields: UploadFields, _ size: Int64) -> Position {
        if let length = fields.length, length != size {
            return .foreign("its length is \(length), and the file's is \(size)")
        }
        if offset > size { return .foreign("it holds \(offset) bytes, and the file has \(size)") }
        if fields.isComplete == true, offset < size {
            return .foreign("it was completed with \(offset) bytes, and the file has \(size)")
        }
        return .at(offset)
    }
}
