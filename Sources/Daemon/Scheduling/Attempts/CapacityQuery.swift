internal import Core
internal import Destinations
internal import Linux
internal import Transport

/// Asks a destination for its free space.
struct CapacityQuery: Sendable {
    let log: Log
    /// Lets the next request to a destination read its secret again.
    let renewSecret: @Sendable (String) -> Void

    /// - Returns: No space when the destination reports none, or cannot be queried: then it is not queried for a while,
    ///   and uploads are tried as if there were space.
    func run(
        _ destination: any Destination, _ name: String, _ permit: TransferPermit
    ) async -> (space: RemoteSpace?, error: UploadError?) {
        do { return (try await destination.space(context: RequestContext(permit: permit, headers: [:])), nil) } catch {
            if error.remedy.mayConcernSecret { renewSecret(name) }
            log.debug(
                "cannot read the free space of a destination", ["destination": name, "reason": error.failure.message])
            return (nil, error)
        }
    }
}
