internal import CCurl
internal import Core

// Sets the contents of a request for libcurl.

extension CurlTransfer {
    func setHeaders(_ easy: UnsafeMutableRawPointer) throws(TransportError) {
        var lines: [String] = []
        let names = Set(request.headers.map { $0.0.lowercased() })
        for (name, value) in request.headers {
            guard isToken(name), value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw error(
                    .other, 0, "the header `\(name.prefix(64))` has a character that is not allowed in a header")
            }
            // libcurl's form of a header without a value.
            lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        // Suppresses headers that libcurl would add: a form's content type, and `Expect` before every body.
        if !names.contains("content-type") { lines.append("Content-Type:") }
        if !names.contains("user-agent") { lines.append("User-Agent: \(request.connection.userAgent ?? "sluice")") }
        // Without it a server may choose any coding (RFC 9110, section 12.5.3).
        if !names.contains("accept-encoding") { lines.append("Accept-Encoding: identity") }
        if !request.expectsContinue { lines.append("Expect:") }
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) ?? list }
        try set(easy, CURLOPT_HTTPHEADER, list)
    }

    func setBody(_ easy: UnsafeMutableRawPointer) throws(TransportError) {
        guard isToken(request.method) else { throw error(.other, 0, "no method is called `\(request.method)`") }
        switch request.body {
        case .none:
            switch request.method {
            // Only this option tells libcurl that no body follows, regardless of `Content-Length`.
            case "HEAD": sluice_set_long(easy, CURLOPT_NOBODY, 1)
            case "GET": sluice_set_long(easy, CURLOPT_HTTPGET, 1)
            case "POST", "PUT", "PATCH":
                sluice_set_long(easy, CURLOPT_POST, 1)
                sluice_set_long(easy, CURLOPT_POSTFIELDSIZE, 0)
                try set(easy, CURLOPT_CUSTOMREQUEST, request.method)
            default: try set(easy, CURLOPT_CUSTOMREQUEST, request.method)
            }
            return
        case .bytes(let bytes): source = BodySource(bytes)
        case .stream(let stream): source = BodySource(stream)
        case .file(let path, let offset, let count, let check):
            do { source = try BodySource(path, offset: offset, count: count, check: check) } catch {
                throw self.error(.sourceFile, 0, "\(error)")
            }
        case .framed(let head, let path, let offset, let count, let tail):
            do { source = try BodySource(head: head, path, offset: offset, count: count, tail: tail) } catch {
                throw self.error(.sourceFile, 0, "\(error)")
            }
        }
        sluice_set_long(easy, CURLOPT_UPLOAD, 1)
        // Without a number libcurl sends it in chunks (RFC 9112, section 7.1).
        sluice_set_off(easy, CURLOPT_INFILESIZE_LARGE, Int(request.body.count ?? -1))
        try set(easy, CURLOPT_CUSTOMREQUEST, request.method)
    }

    func set(
        _ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ list: UnsafeMutablePointer<curl_slist>?
    ) throws(TransportError) {
        guard let list else { throw error(.other, 0, "libcurl: out of memory") }
        lists.append(list)
        sluice_set_list(easy, option, list)
    }

    func set(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ value: String) throws(TransportError) {
        let code = sluice_set_string(easy, option, value)
        if code != CURLE_OK { throw error(.other, Int32(code.rawValue), String(cString: curl_easy_strerror(code))) }
    }
}
