internal import Core
internal import Transport

// Requests that read from a bucket.

extension S3API {
    struct Object: Sendable {
        var size: Int64
        var etag: String?
        /// The digest that we set when we made the object.
        var sha256: String?
        /// The ETag was computed from other bytes than the object's own; see ``hidesTags(_:)``.
        var hidesTag = false
        /// The checksum of its bytes, where the service gives it for each object.
        var checksum: String?
    }

    struct Part: Sendable {
        /// Counted from 1.
        var number: Int
        var size: Int64
        /// The ETag, as it was received.
        var tag: String
    }

    enum Parts: Sendable {
        case list([Part])
        case gone(UploadError)
        /// The service has no such list.
        case none
        /// The key lacks the right, or is invalid.
        case refused(UploadError)
    }

    struct Upload: Sendable {
        var id: String
        var key: FilePath
        var begunAt: WallTime?
    }

    private var wire: BucketProtocolNames { settings.preset.wire }

    /// - Throws: ``UploadError`` for anything but success.
    func answer(_ request: S3Request) async throws -> Response {
        let response: Response
        do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
        guard (200..<300).contains(response.status) else { throw refusal(response, request.what) }
        return response
    }

    /// The bucket's own 403 to a question: the key lacks the right, or is invalid.
    struct MissingPermissionError: Error { let error: UploadError }

    /// - Returns: `nil` when there is none.
    func status(at key: FilePath) async throws -> Object? {
        do { return try await readObject(at: key) } catch let none as MissingPermissionError { throw none.error }
    }

    /// The result of looking at a key.
    enum KeyLookup {
        case there(Object)
        case nothing
        /// The right does not allow looking. Amazon answers the same for a missing object when the key may not list.
        case hidden
        /// The right has ended, and is not renewed only to look.
        case ended
    }

    /// - Parameter isMade: An object with this key is known to exist.
    func lookUp(_ key: FilePath, isMade: Bool = false) async throws -> KeyLookup {
        if settings.assignedObject == nil, cannotLookUp { return .hidden }
        do {
            guard let object = try await readObject(at: key) else { return .nothing }
            noteLookupAnswered()
            return .there(object)
        } catch is MissingPermissionError {
            if isMade, settings.assignedObject == nil { noteLookupRefused() }
            return .hidden
        } catch let error as UploadError {
            if settings.assignedObject != nil, S3Verdict.endsAtOSS.contains(error.failure.code.rawValue) {
                return .ended
            }
            throw error
        }
    }

    /// - Throws: Also ``MissingPermissionError``.
    func readObject(at key: FilePath) async throws -> Object? {
        let response: Response
        let request = S3Request(method: "HEAD", key: key, what: "the lookup of an object")
        do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
        if response.status == 404 || response.status == 410 { return nil }
        guard (200..<300).contains(response.status) else {
            var error = refusal(response, request.what)
            if error.failure.code == .proxyRefused { throw error }
            // The file is not at fault: the service has not seen it yet.
            if verdict(response).hasNoBody { error.remedy = .authenticate }
            if response.status == 403, verdict(response).hasNoBody {
                // Amazon gives the same answer for a missing object when the key may not list.
                error.failure.message +=
                    "; it gives no reason: the key is refused, or may not read there. Check \(rights), and whether "
                    + "the bucket's policy allows `s3:GetObject` and `s3:ListBucket`"
            }
            if response.status == 403, Self.isAccessDenied(error) { throw MissingPermissionError(error: error) }
            throw error
        }
        // The answer has another form than was requested: its length and tag are those of a proxy's version.
        let varies = response.headers["Vary"]?.lowercased().contains("accept-encoding") == true
        if varies, response.headers["Content-Encoding"].map({ $0.lowercased() != "identity" }) == true {
            throw unusable(
                "an object in an encoding that was not requested: a proxy or server compresses answers")
        }
        // Every service gives one of these headers for each object. An intermediary that answers every request does
        // not.
        let tells = ["ETag", wire.digestHeader, wire.checksum?.answered].compactMap { $0 }
        guard tells.contains(where: { response.headers[$0] != nil }) else {
            if response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true {
                throw client.answeredByPage(request.what, response)
            }
            var error = unusable(
                "an object without an ETag: a login portal or a proxy answers, or the address is wrong")
            error.remedy = .misconfigured
            throw error
        }
        guard let size = response.headers["Content-Length"].flatMap({ plainInteger($0) }) else {
            throw unusable("an object without a length")
        }
        return Object(
            size: size, etag: response.headers["ETag"], sha256: response.headers[wire.digestHeader],
            hidesTag: Self.hidesTags(response),
            checksum: wire.checksum?.answered.flatMap { response.headers[$0] })
    }

    /// An object that is encrypted with a key of KMS or of the client has an ETag of 32 digits that is no MD5 of the
    /// content (Amazon S3 API reference, "Object": `ETag`).
    static func hidesTags(_ response: Response) -> Bool {
        response.headers["x-amz-server-side-encryption"]?.lowercased().hasPrefix("aws:kms") == true
            || response.headers["x-amz-server-side-encryption-customer-algorithm"] != nil
            || response.headers["x-oss-server-side-encryption"].map { $0 != "AES256" } ?? false
    }

    /// All parts of an upload, page by page. Servers differ in the meaning of the marker, so a part that comes twice
    /// counts once.
    func parts(of upload: String, _ key: FilePath) async throws -> Parts {
        var found: [Int: Part] = [:]
        var marker: String?
        while true {
            var request = S3Request(method: "GET", key: key, what: "the list of parts")
            request.isForList = true
            request.query = [("uploadId", upload), ("max-parts", "1000")]
            if let marker { request.query.append(("part-number-marker", marker)) }
            let response: Response
            do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
                throw error.error
            }
            let error = refusal(response, request.what)
            if response.status == 404 || response.status == 410 {
                if verdict(response).isFromOtherServer { throw error }
                return .gone(error)
            }
            if response.status == 501 || verdict(response).isUnknownHere { return .none }
            if response.status == 403, Self.isAccessDenied(error) { return .refused(error) }
            guard (200..<300).contains(response.status) else { throw error }
            let list = try list(response, request, "ListParts")
            guard list["UploadId"] != nil else { throw notAList(request) }
            let before = found.count
            for part in list.all("Part") {
                guard let number = part["PartNumber"]?.whole, (1...10_001).contains(number),
                    let size = part["Size"]?.whole
                else { continue }
                found[Int(number)] = Part(number: Int(number), size: size, tag: part["ETag"]?.text ?? "")
            }
            guard isTruncated(list) else { return .list(found.values.sorted { $0.number < $1.number }) }
            guard let next = list["NextPartNumberMarker"]?.text, found.count > before else { throw endless(request) }
            marker = next
        }
    }

    /// Incomplete uploads of the bucket whose keys have this prefix.
    func uploads(beginningWith prefix: FilePath) async throws -> [Upload] {
        var found: [String: Upload] = [:]
        var markers: [(name: String, value: String)] = []
        var isCoded = false
        while true {
            var request = S3Request(method: "GET", what: "the list of unfinished uploads")
            request.isForList = true
            request.query = [("uploads", ""), ("prefix", prefix.text ?? prefix.display), ("max-uploads", "1000")]
            if isCoded { request.query.append(Self.coded) }
            request.query += markers
            let response: Response
            do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
                throw error.error
            }
            // Some services answer so when there is none, and some have no such list.
            if response.status == 404 || response.status == 501 || verdict(response).isUnknownHere { return [] }
            guard (200..<300).contains(response.status) else { throw refusal(response, request.what) }
            // Ceph encodes the keys of this list on request, but does not report it (seen at 16.2). So coding is
            // requested only when a key cannot be read otherwise.
            if !isCoded, XMLValue.read(response.body) == nil {
                isCoded = true
                continue
            }
            let list = try list(response, request, "ListMultipartUploads")
            let before = found.count
            for upload in list.all("Upload") {
                guard let id = upload["UploadId"]?.text, let key = name("Key", of: upload, in: list) else { continue }
                found[id] = Upload(
                    id: id, key: FilePath(key), begunAt: upload["Initiated"]?.text.flatMap { WallTime(rfc3339: $0) })
            }
            guard isTruncated(list) else { return Array(found.values) }
            guard let key = name("NextKeyMarker", of: list, in: list), let id = list["NextUploadIdMarker"]?.text,
                found.count > before
            else { throw endless(request) }
            markers = [("key-marker", key), ("upload-id-marker", id)]
        }
    }

    /// - Returns: Whether nothing is left of it.
    func abort(_ upload: String, _ key: FilePath) async throws -> Bool {
        let request = S3Request(
            method: "DELETE", key: key, query: [("uploadId", upload)], what: "the removal of an unfinished upload")
        let response: Response
        do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
        if (200..<300).contains(response.status), response.isWebPageForXML {
            throw client.answeredByPage(request.what, response)
        }
        // A missing upload is the desired state. Some services answer 410, or use the code with another status.
        let isGone = [404, 410].contains(response.status) || verdict(response).code == "NoSuchUpload"
        if (200..<300).contains(response.status) || isGone { return true }
        throw refusal(response, request.what)
    }

    /// Removes an object, or nothing where none has the key. In a bucket with versions the object stays as an old version.
    ///
    /// - Returns: `false` where the key of the account may not.
    func remove(_ key: FilePath) async throws -> Bool {
        let request = S3Request(method: "DELETE", key: key, what: "the removal of an object")
        let response: Response
        do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
        if (200..<300).contains(response.status), response.isWebPageForXML {
            throw client.answeredByPage(request.what, response)
        }
        if (200..<300).contains(response.status) || response.status == 404 { return true }
        let error = refusal(response, request.what)
        if S3API.isAccessDenied(error) { return false }
        throw error
    }

    var deleteRight: String { settings.preset.wire.signing == .s3 ? "s3:DeleteObject" : "oss:DeleteObject" }

    /// Objects in the order of their names.
    func objects(after mark: String?) async throws -> RemotePage {
        var request = S3Request(method: "GET", what: "the list of objects")
        request.isForList = true
        request.query = [("list-type", "2"), ("max-keys", "200"), Self.coded]
        if let mark { request.query.append(("continuation-token", mark)) }
        let list = try list(try await answer(request), request, "ListBucket")
        let items = list.all("Contents").compactMap { object -> RemotePage.Item? in
            guard let key = name("Key", of: object, in: list) else { return nil }
            let path = FilePath(key)
            return RemotePage.Item(
                id: path.display, name: path.name.display, url: address(of: path), size: object["Size"]?.whole,
                createdAt: object["LastModified"]?.text.flatMap { WallTime(rfc3339: $0) })
        }
        guard isTruncated(list) else { return RemotePage(items: items, next: nil) }
        guard let next = list["NextContinuationToken"]?.text, next != mark else { throw endless(request) }
        return RemotePage(items: items, next: next)
    }

    // MARK: Lists

    /// XML cannot represent every key: a single control character in a foreign object's name would make the whole list
    /// unreadable.
    private static let coded = (name: "encoding-type", value: "url")

    /// A 200 from a login page, or from a server that stopped in the middle, is not an empty list.
    private func list(_ response: Response, _ request: S3Request, _ name: String) throws -> XMLValue {
        let root = XMLValue.read(response.body)
        if root?.name == "Error" { throw refusal(response, request.what) }
        guard let root, root.name.hasPrefix(name) else { throw notAList(request) }
        return root
    }

    private func notAList(_ request: S3Request) -> UploadError {
        unusable("an answer to \(request.what) that is not a list")
    }

    private func isTruncated(_ list: XMLValue) -> Bool { list["IsTruncated"]?.text == "true" }

    /// It is unknown what such a server has, and following the pages would never end.
    private func endless(_ request: S3Request) -> UploadError {
        unusable("an answer to \(request.what) that announces more, and the next page has nothing new")
    }

    /// A key from a list, decoded where the list says that it is coded. Services write a blank as `+` or as `%20`.
    private func name(_ field: String, of element: XMLValue, in list: XMLValue) -> String? {
        guard let written = element[field]?.content, list["EncodingType"]?.text == "url" else {
            return element[field]?.content
        }
        return PercentCoding.text(decoding: written.replacing("+", with: " ")) ?? written
    }

    // MARK: Permissions of a key

    /// The permissions that are needed to query an object, by name.
    var lookupRights: String { settings.preset.wire.signing == .s3 ? "s3:GetObject, s3:ListBucket" : "oss:GetObject" }

    var listRight: String { settings.preset.wire.signing == .s3 ? "s3:ListBucket" : "oss:ListObjects" }

    /// Whether the service has an unfinished upload with this name. Sends an empty part as the first part,
    /// which a key that may only write is allowed to do.
    func hasUpload(_ upload: String, _ key: FilePath) async throws -> Bool {
        let request = S3Request(
            method: "PUT", key: key, query: [("partNumber", "1"), ("uploadId", upload)], body: .bytes([]),
            what: "the lookup of an unfinished upload")
        let response: Response
        do { response = try await send(request) } catch let error as AuthorizedClient.NoAnswerError {
            throw error.error
        }
        if (200..<300).contains(response.status), !response.isWebPageForXML { return true }
        if isNoSuchUpload(response) { return false }
        let error = refusal(response, request.what)
        guard response.status >= 500 else { throw error }
        // A server that fails for a part of an unknown upload may still answer a removal correctly.
        let removal = S3Request(method: "DELETE", key: key, query: [("uploadId", upload)], what: request.what)
        let answer: Response
        do { answer = try await send(removal) } catch is AuthorizedClient.NoAnswerError { throw error }
        if isNoSuchUpload(answer) { return false }
        guard (200..<300).contains(answer.status) else { throw error }
        return true
    }

    private func isNoSuchUpload(_ response: Response) -> Bool {
        [404, 410].contains(response.status) || verdict(response).code == "NoSuchUpload"
    }

    /// A question that the key has no right to ask. An invalid key gets other codes, or may not write either.
    static func isAccessDenied(_ error: UploadError) -> Bool {
        [.service("AccessDenied"), .http(403)].contains(error.failure.code)
    }
}
