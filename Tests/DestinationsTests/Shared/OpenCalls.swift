import Core
import Credentials
import TestKit
import Transport

@testable import Destinations

extension DestinationTools {
    init(
        transport: any Transporting, secrets: SecretReader, clocks: any Clocks, name: String,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.init(
            transport: PermittedTransport(transport), secrets: secrets, clocks: clocks, name: name, log: log)
    }
}

// The calls of a destination with ``OpenPermit``.
extension Destination {
    func upload(_ order: UploadOrder, reporter: any UploadReporter) async throws -> RemoteObject {
        try await upload(order, reporter: reporter, context: .open)
    }

    func upload(together orders: [UploadOrder], reporter: any BundleReporter) async throws -> [String: RemoteObject] {
        try await upload(together: orders, reporter: reporter, context: .open)
    }

    func discard(_ checkpoint: Checkpoint) async throws(UploadError) -> Bool {
        try await discard(checkpoint, context: .open)
    }

    func find(_ order: UploadOrder) async throws(UploadError) -> RemoteLookup { try await find(order, context: .open) }
    func check() async -> CheckResult { await check(context: .open) }
    func space() async throws(UploadError) -> RemoteSpace? { try await space(context: .open) }
    func list(after mark: String?) async throws(UploadError) -> RemotePage? {
        try await (self as? any ObjectListing)?.list(after: mark, context: .open)
    }
    func unfinished() async throws(UploadError) -> [RemoteUnfinished]? {
        try await (self as? any UnfinishedListing)?.unfinished(context: .open)
    }
}

extension AuthorizedClient {
    init(
        transport: any Transporting, credentials: CredentialProvider, origin: String, clocks: any Clocks, name: String
    ) {
        self.init(
            transport: PermittedTransport(transport), credentials: credentials, origins: [origin], clocks: clocks,
            name: name)
    }

    func ask(_ request: Request) async throws -> Answer { try await send(request, .open) }
}

extension S3 {
    var api: S3API { S3API(bucket: bucket, context: .open) }
}

extension S3KeySource {
    func current() async throws -> (key: S3Key, reading: Int) { try await current(.open) }
}
