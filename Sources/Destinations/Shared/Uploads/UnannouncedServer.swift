internal import Core
internal import Transport

/// An answer to OPTIONS without any sign of the protocol, for `check`.
struct UnannouncedServer: Sendable {
    let client: AuthorizedClient
    let response: Response
    /// The protocol, as in "did not announce tus".
    let speech: String

    var result: CheckResult {
        if response.refusesOnlyChallenge {
            return CheckResult(.failed, client.refused("OPTIONS", response, .authenticate).failure.message)
        }
        if let error = client.refusedByProxy("OPTIONS", response) {
            return CheckResult(.failed, error.failure.message)
        }
        let status = response.status
        let isPage = response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
        let answer = "answered \(status) to OPTIONS" + (isPage ? " with a web page" : "") + client.orProxy(response)
        if isOfObjectStore(response.body) {
            return CheckResult(.failed, answer + " as an object store does: set `type: s3`, with a bucket and its keys")
        }
        switch status {
        case 401, 403: return CheckResult(.failed, answer + ": check \(client.right)")
        case 404, 410: return CheckResult(.failed, answer + ": nothing is there; check the address")
        case 300..<400: return CheckResult(.failed, answer + ", which redirects elsewhere; check the address")
        // Servers that do not know OPTIONS may still speak the protocol.
        case 501: break
        case 500...: return CheckResult(.failed, answer + "; uploads wait until it works")
        default: break
        }
        return CheckResult(
            .warning, answer + " and did not announce \(speech); uploads are tried anyway: check the address")
    }

    /// Whether a body is the error document of S3 and its relatives: `<Error><Code>AccessDenied</Code>…`.
    private func isOfObjectStore(_ body: [UInt8]) -> Bool {
        let text = String(decoding: textStart(of: body).prefix(2048), as: UTF8.self)
        return text.hasPrefix("<") && text.contains("<Error>") && text.contains("<Code>")
    }
}
