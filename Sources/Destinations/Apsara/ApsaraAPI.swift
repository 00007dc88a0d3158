internal import Core
internal import Transport

/// VOD itself, called with the person's own key (VOD API reference, version 2017-03-21).
struct ApsaraAPI: ApsaraUploadIssuer {
    let client: AuthorizedClient
    let keys: any S3KeySource
    /// The address of the service, without a slash at its end.
    let endpoint: String
    let version: ApsaraSignature.Version
    let clock: ServiceClock
    let rights: String
    let limits: Limits
    var reportsCompletion: Bool { true }

    static let defaultRegion = "cn-shanghai"

    static func endpoint(_ region: String) -> String {
        // Hangzhou has no host of its own (the service's table of endpoints).
        "https://vod.\(region == "cn-hangzhou" ? defaultRegion : region).aliyuncs.com"
    }

    func begin(
        _ request: ApsaraUploadRequest, again: Bool, _ context: RequestContext
    ) async throws -> ApsaraTicketAnswer {
        if request.sort == .image { return .given(try await createImage(request, context), isNew: true) }
        if again, let found = try await recover(request, context) { return found }
        do {
            let parameters =
                request.metadata.fields.map { (name: $0.key, value: $0.value) }
                + [("FileName", request.name), ("FileSize", "\(request.size)"), ("ReferenceId", request.reference)]
            let ticket = try await ticket(try await call("CreateUploadVideo", parameters, context), request.sort)
            return .given(ticket, isNew: true)
        } catch let error as UploadError where error.failure.code.rawValue.hasPrefix("InvalidParameter.ReferenceId") {
            // The medium was made before, by a request whose answer was lost, or by an earlier installation.
            return try await recover(request, context) ?? .useless
        }
    }

    private func createImage(
        _ request: ApsaraUploadRequest, _ context: RequestContext
    ) async throws -> ApsaraUploadTicket {
        let parameters =
            request.metadata.fields.map { (name: $0.key, value: $0.value) }
            + [("OriginalFileName", request.name), ("ImageExt", Self.ending(request.name))]
        return try await ticket(try await call("CreateUploadImage", parameters, context), request.sort)
    }

    private static func ending(_ name: String) -> String { ApsaraMediaKind.ending(of: FilePath(name)) ?? "png" }

    /// VOD has no such call for pictures (VOD developer guide, "Upload URLs and credentials").
    func renews(_ medium: ApsaraMedium) -> Bool { medium.sort != .image }

    func renew(
        _ medium: ApsaraMedium, _ request: ApsaraUploadRequest, _ context: RequestContext
    ) async throws -> ApsaraUploadTicket {
        guard let id = medium.id else {
            throw UploadError(
                client.failure(
                    .protocol, .service("InvalidVideo.NotFound"), "its media id is not known", retryable: true),
                remedy: .retry(after: nil))
        }
        let json = try await call("RefreshUploadVideo", [("VideoId", id)], context, region: medium.region)
        return try await ticket(json, medium.sort, before: medium)
    }

    /// Looks for the medium with this reference; `nil` where there is none.
    private func recover(
        _ request: ApsaraUploadRequest, _ context: RequestContext
    ) async throws -> ApsaraTicketAnswer? {
        do {
            let reference = [("ReferenceId", request.reference)]
            // VOD would take a request for a new right to a complete medium as a request to overwrite it.
            if let info = try await callIfPermitted("GetMezzanineInfo", reference, context)?["Mezzanine"],
                info["Status"]?.string == "Normal", let id = info["VideoId"]?.text
            {
                guard info["Size"]?.whole == request.size else { return .useless }
                return .whole(
                    ApsaraMedium(
                        sort: request.sort, id: id, endpoint: endpoint, bucket: "", key: FilePath(request.name)))
            }
            let ticket = try await ticket(try await call("RefreshUploadVideo", reference, context), request.sort)
            return .given(ticket, isNew: false)
        } catch let error as UploadError {
            // Older services know no references, and require the other parameter.
            let isUnknown = ["MissingParameter", "InvalidParameter"].contains {
                error.failure.code.rawValue.hasPrefix($0)
            }
            if ApsaraVerdict.isGone(error) || isUnknown { return nil }
            throw error
        }
    }

    func isWhole(_ medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> Bool? {
        guard let id = medium.id else { return nil }
        let (about, status, there): (String?, String?, Int64?)
        if medium.sort == .image {
            let info = try await callIfPermitted("GetImageInfo", [("ImageId", id)], context, region: medium.region)?[
                "ImageInfo"]
            (about, status, there) = (
                info?["ImageId"]?.string, info?["Status"]?.string, info?["Mezzanine"]?["FileSize"]?.whole
            )
        } else {
            let info = try await callIfPermitted(
                "GetMezzanineInfo", [("VideoId", id)], context, region: medium.region)?[
                    "Mezzanine"]
            (about, status, there) = (info?["VideoId"]?.string, info?["Status"]?.string, info?["Size"]?.whole)
        }
        // A state of another medium says nothing about this file.
        guard about == id else { return nil }
        return switch status {
        case "Normal": there.map { $0 == size }
        case "Uploading": false
        default: nil
        }
    }

    func state(of medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> ApsaraState? {
        guard let id = medium.id else { return nil }
        let info: JSONValue?
        do {
            info =
                medium.sort == .image
                ? try await call("GetImageInfo", [("ImageId", id)], context, region: medium.region)["ImageInfo"]
                : try await call("GetVideoInfo", [("VideoId", id)], context, region: medium.region)["Video"]
        } catch let error as UploadError {
            if ApsaraVerdict.isGone(error) { return .gone }
            // A key that only allows uploads causes no hold for other uploads.
            if ["Forbidden", "NoPermission"].contains(where: { ApsaraVerdict.has($0, error) }) {
                return .notAllowed(medium.sort == .image ? "vod:GetImageInfo" : "vod:GetVideoInfo")
            }
            throw error
        }
        guard info?["VideoId"]?.string == id || info?["ImageId"]?.string == id else { return nil }
        guard let state = info?["Status"]?.string.map({ ApsaraState($0) }) else { return nil }
        let there = info?[medium.sort == .image ? "Mezzanine" : "Size"]
        if state == .ready, let there = there?["FileSize"]?.whole ?? there?.whole, there != size {
            return .working("it reports \(there) bytes, and the file has \(size)")
        }
        return state
    }

    /// - Returns: `nil` where VOD does not answer: a key may allow uploads alone.
    private func callIfPermitted(
        _ action: String, _ parameters: [(name: String, value: String)], _ context: RequestContext,
        region: String? = nil
    ) async throws -> JSONValue? {
        do { return try await call(action, parameters, context, region: region) } catch let error as UploadError {
            switch error.remedy {
            case .authenticate, .failUpload, .misconfigured, .retry: return nil
            default: throw error
            }
        }
    }

    func check(_ context: RequestContext) async -> CheckResult {
        do {
            // No medium has this name, and VOD has to check the key before it can say so.
            _ = try await call("RefreshUploadVideo", [("VideoId", "sluice-check")], context)
            return CheckResult(.ok, "\(rights) is good").about(.credentials)
        } catch let error as UploadError {
            if ApsaraVerdict.isGone(error) {
                return CheckResult(.ok, "the key is good, and VOD answers").about(.credentials)
            }
            return CheckResult(.failed, error.checkDescription(right: rights))
        } catch { return CheckResult(.failed, "the check was stopped") }
    }

    // MARK: Calls

    /// Values in the query are percent-coded, and an answer may code them once more.
    private func conceal(_ key: S3Key, _ signed: ApsaraSignature.Signed) {
        for text in [key.id, key.token ?? ""] {
            let once = PercentCoding.encode(text.utf8)
            client.remember([once, PercentCoding.encode(once.utf8)])
        }
        let proof = (signed.headers.first { $0.name == "Authorization" }?.value ?? signed.query)
            .split(separator: "Signature=").last.map(String.init)
        if let proof { [proof, PercentCoding.text(decoding: proof) ?? proof].forEach(client.rememberForNow) }
    }

    private func ticket(
        _ json: JSONValue, _ sort: ApsaraMediaKind, before medium: ApsaraMedium? = nil
    ) async throws -> ApsaraUploadTicket {
        do { return try ApsaraUploadTicket(json, as: sort, before: medium) } catch {
            throw UploadError(
                client.failure(.protocol, .unusableAnswer, "VOD gives \(error.words)", retryable: true),
                remedy: .holdDestination(after: nil))
        }
    }

    /// Three faults are corrected once each: an expired key, a wrong clock, and a nonce that was used before.
    private func call(
        _ action: String, _ parameters: [(name: String, value: String)], _ context: RequestContext,
        region: String? = nil
    ) async throws -> JSONValue {
        var corrected: Set<S3Signed.Correction> = []
        var hasNewNonce = false
        // An upload that was started in a region is queried there, unless the configuration names the service.
        let base = region.flatMap { endpoint.hasSuffix(".aliyuncs.com") ? Self.endpoint($0) : nil } ?? endpoint
        while true {
            let (key, reading) = try await client.key(of: keys, context)
            let ahead = clock.ahead
            let signed = ApsaraSignature(
                key: key, version: version, action: action, parameters: parameters,
                host: WebAddress(base).authority ?? ""
            ).signed("POST", at: client.clocks.wall().advanced(by: ahead))
            conceal(key, signed)
            let request = Request(
                "POST", "\(base)/?\(signed.query)",
                headers: signed.headers + [("Accept", "application/json"), Request.acceptsGzip], limits: limits)
            let response: Response
            do { response = try await client.send(request, context).response } catch let error
                as AuthorizedClient.NoAnswerError
            {
                throw error.error
            }
            if response.status == 200 {
                guard let json = JSONValue.read(response.body), case .object = json else {
                    throw UploadError(
                        client.failure(
                            .protocol, .unusableAnswer,
                            "\(client.host(base)) answers \(action) with something other than a JSON object",
                            retryable: true), remedy: .holdDestination(after: nil))
                }
                return json
            }
            let code = ApsaraVerdict(response, now: client.clocks.wall()).code
            switch code {
            case let code? where code.hasPrefix("SignatureNonceUsed") && !hasNewNonce:
                hasNewNonce = true
                continue
            case let code? where code.hasPrefix("InvalidTimeStamp.Expired") || code.hasPrefix("IllegalTimestamp"):
                if corrected.insert(.clock).inserted,
                    clock.isCorrected(by: response, now: client.clocks.wall(), ahead: ahead)
                {
                    continue
                }
            case let code? where code.hasPrefix("InvalidSecurityToken"):
                await keys.refused(reading)
                if corrected.insert(.key).inserted { continue }
            case let code?
            where code.hasPrefix("InvalidAccessKeyId") || code.hasPrefix("SignatureDoesNotMatch")
                || code.hasPrefix("IncompleteSignature"):
                if corrected.insert(.key).inserted, await keys.isReplaced(key, reading, context) { continue }
            // Without a code the key may be the cause: the next call reads it again.
            case nil where response.status == 401: await keys.refused(reading)
            default: break
            }
            var refused = client.refused("the call \(action)", response)
            refused.failure.message = redacted(refused.failure.message)
            throw refused
        }
    }
}
