internal import Core
internal import Transport

extension TusDialect {
    /// Queries with our own extension (docs/destinations/tus.md) if the server announces it; tus itself has no such
    /// request.
    func find(_ order: UploadOrder) async throws -> RemoteLookup {
        guard let announced = try await capabilities.current(self), announced.canLookUp else {
            return .unknown("\(host(endpoint)) cannot be asked for a file by its name, as tus has no request for that")
        }
        let metadata = TusMetadata.header(
            order, isASCII: settings.isASCII, titleKey: settings.preset?.titleKey, isMinimal: false, isRepeat: false)
        let response = try await followRedirects(
            Request(
                "HEAD", endpoint,
                headers: [
                    Self.version, ("Upload-Length", "\(order.file.size)"), ("Upload-Metadata", metadata),
                ], limits: settings.limits.reading)
        ).response
        // The header distinguishes the server's answer from a proxy's.
        switch (response.status, response.headers["Sluice-Lookup"]) {
        case (200, "held"): return .found(RemoteObject(id: nil, url: nil, verifiedBy: "digest"))
        case (404, "absent"): return .absent
        default:
            let remedy: Remedy =
                if case .stop(let remedy) = verdict(.HEAD, response) { remedy } else { .retry(after: nil) }
            throw refused("the lookup of a file", response, remedy)
        }
    }
}
