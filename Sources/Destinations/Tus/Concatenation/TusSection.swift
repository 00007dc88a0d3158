internal import Core
internal import Transport

/// A section of a file that is sent as a partial upload (tus 1.0, "Concatenation").
struct TusSection: Sendable {
    let range: Range<Int64>
    /// Those of all sections of the file.
    var requests = SectionRequests()

    /// A smaller section is not worth its requests.
    static let minSize: Int64 = 8 << 20

    /// Distinguishes it from the other sections of the file, and from those of another content.
    func name(of file: StagedFile) -> String {
        "\(range.lowerBound)-\(range.upperBound).\(hexadecimal(file.sha256).prefix(16))"
    }

    /// Cuts a file into sections of about the same size.
    ///
    /// - Returns: One section where the file is too small for more.
    static func cut(_ size: Int64, into most: Int) -> [TusSection] {
        let count = max(1, min(Int64(most), size / minSize))
        return (0..<count).map { TusSection(range: size * $0 / count..<size * ($0 + 1) / count) }
    }

    /// Sends a request with `count` bytes of it. The quota is reserved first: other sections are sent at the same time,
    /// and each of them would use the same remainder.
    func send(
        _ request: Request, _ count: Int64, _ client: AuthorizedClient, _ context: RequestContext,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> AuthorizedClient.Carried {
        if let shortage = await requests.begin(count, of: context.permit) {
            return AuthorizedClient.Carried(
                unsent: shortage.error { client.failure($0, $1, $2, retryable: $3) })
        }
        let carried = await client.sendBody(request, context, sent: sent)
        requests.end(count, sent: carried.bytesSent, of: context.permit)
        return carried
    }
}
