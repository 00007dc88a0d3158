internal import Core
internal import Transport

// What is asked of a bucket.

extension S3API {
    struct Object: Sendable {
        var size: Int64
        var etag: String?
        /// As we said it when we made the object.
        var sha256: String?
        /// Its ETag is of other bytes than its own; see ``hidesTags(_:)``.
        var hidesTag = false
    }

    struct Part: Sendable {
        /// From 1.
        var number: Int
        var size: Int64
        /// The ETag, as it came.
        var tag: String
    }

    enum Parts: Sendable {
        case list([Part])
        case gone(UploadError)
        /// The service has no such list.
        case none
    }

    struct Upload: Sendable {
        var id: String
        var key: FilePath
        var begunAt: WallTime?
    }

    /// - Throws: ``UploadError`` for anything but success.
    func answer(_ request: S3Request) async throws -> Response {
        let response: Response
        do { response = try await send(request) } catch let error as Asking.Unanswered { throw error.error }
        guard (200..<300).contains(response.status) else { throw refusal(response, request.what) }
        return response
    }

    /// - Returns: `nil` when there is none.
    func look(at key: FilePath) async throws -> Object? {
        let response: Response
        let request = S3Request(method: "HEAD", key: key, what: "the question for an object")
        do { response = try await send(request) } catch let error as Asking.Unanswered { throw error.error }
        if response.status == 404 { return nil }
        guard (200..<300).contains(response.status) else {
            var error = refusal(response, request.what)
            // Nothing is wrong with the file, of which it knows nothing yet.
            if verdict(response).isMute { error.remedy = .authenticate }
            throw error
        }
        guard let size = response.headers["Content-Length"].flatMap({ plainInteger($0) }) else {
            throw UploadError(
                asking.failure(.protocol, "unusable_answer", "an object without a length", retryable: true),
                remedy: .again(after: nil))
        }
        return Object(
            size: size, etag: response.headers["ETag"], sha256: response.headers[S3Dialect.digestHeader],
            hidesTag: Self.hidesTags(response))
    }

    /// What is encrypted with a key of KMS or of the client has an ETag of 32 digits that is no MD5 of the content (Amazon S3 API
    /// reference, "Object": `ETag`).
    static func hidesTags(_ response: Response) -> Bool {
        response.headers["x-amz-server-side-encryption"]?.lowercased().hasPrefix("aws:kms") == true
            || response.headers["x-amz-server-side-encryption-customer-algorithm"] != nil
    }

    /// All parts of an upload, page by page. Servers differ in what the marker means: what comes twice counts once.
    func parts(of upload: String, _ key: FilePath) async throws -> Parts {
        var found: [Int: Part] = [:]
        var marker: String?
        while true {
            var request = S3Request(method: "GET", key: key, what: "the question for parts")
            request.query = [("uploadId", upload), ("max-parts", "1000")]
            if let marker { request.query.append(("part-number-marker", marker)) }
            let response: Response
            do { response = try await send(request) } catch let error as Asking.Unanswered { throw error.error }
            let error = refusal(response, request.what)
            if response.status == 404 { return .gone(error) }
            if response.status == 501 || verdict(response).isUnknownHere { return .none }
            guard (200..<300).contains(response.status) else { throw error }
            guard let list = XMLValue.read(response.body), list.name.hasPrefix("ListParts"), list["UploadId"] != nil
            else {
                throw UploadError(
                    asking.failure(
                        .protocol, "unusable_answer", "an answer to the question for parts that is no list",
                        retryable: true), remedy: .again(after: nil))
            }
            let before = found.count
            for part in list.all("Part") {
                guard let number = part["PartNumber"]?.whole, (1...10_001).contains(number),
                    let size = part["Size"]?.whole
                else { continue }
                found[Int(number)] = Part(number: Int(number), size: size, tag: part["ETag"]?.text ?? "")
            }
            marker = list["NextPartNumberMarker"]?.text
            guard list["IsTruncated"]?.text == "true", marker != nil, found.count > before else {
                return .list(found.values.sorted { $0.number < $1.number })
            }
        }
    }

    /// Uploads of the bucket that are not complete, of keys that begin so.
    func uploads(beginningWith prefix: FilePath) async throws -> [Upload] {
        var found: [String: Upload] = [:]
        var markers: [(name: String, value: String)] = []
        while true {
            var request = S3Request(method: "GET", what: "the question for unfinished uploads")
            request.query = [("uploads", ""), ("prefix", prefix.text ?? prefix.display), ("max-uploads", "1000")]
            request.query += markers
            let response: Response
            do { response = try await send(request) } catch let error as Asking.Unanswered { throw error.error }
            // Some say so when there is none, and some have no such list.
            if response.status == 404 || response.status == 501 || verdict(response).isUnknownHere { return [] }
            guard (200..<300).contains(response.status) else { throw refusal(response, request.what) }
            let list = XMLValue.read(response.body)
            let before = found.count
            for upload in list?.all("Upload") ?? [] {
                guard let id = upload["UploadId"]?.text, let key = upload["Key"]?.content else { continue }
                found[id] = Upload(
                    id: id, key: FilePath(key), begunAt: upload["Initiated"]?.text.flatMap { WallTime(rfc3339: $0) })
            }
            guard list?["IsTruncated"]?.text == "true", found.count > before, let key = list?["NextKeyMarker"]?.content,
                let id = list?["NextUploadIdMarker"]?.text
            else { return Array(found.values) }
            markers = [("key-marker", key), ("upload-id-marker", id)]
        }
    }

    /// - Returns: Whether nothing is left of it.
    func abort(_ upload: String, _ key: FilePath) async throws -> Bool {
        let request = S3Request(
            method: "DELETE", key: key, query: [("uploadId", upload)], what: "the removal of an unfinished upload")
        let response: Response
        do { response = try await send(request) } catch let error as Asking.Unanswered { throw error.error }
        if (200..<300).contains(response.status) || response.status == 404 { return true }
        throw refusal(response, request.what)
    }

    /// Objects, by their names.
    func objects(after mark: String?) async throws -> RemotePage {
        var request = S3Request(method: "GET", what: "the list of objects")
        request.query = [("list-type", "2"), ("max-keys", "200")]
        if let mark { request.query.append(("continuation-token", mark)) }
        let list = XMLValue.read(try await answer(request).body)
        let items = (list?.all("Contents") ?? []).compactMap { object -> RemotePage.Item? in
            guard let key = object["Key"]?.content else { return nil }
            let path = FilePath(key)
            return RemotePage.Item(
                id: path.display, name: path.name.display, url: address(of: path), size: object["Size"]?.whole,
                createdAt: object["LastModified"]?.text.flatMap { WallTime(rfc3339: $0) })
        }
        return RemotePage(
            items: items, next: list?["IsTruncated"]?.text == "true" ? list?["NextContinuationToken"]?.text : nil)
    }
}
