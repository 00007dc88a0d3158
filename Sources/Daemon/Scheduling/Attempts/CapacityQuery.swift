internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Asks a destination for its free space.
struct CapacityQuery: Sendable {
    let log: Log
    let stateHealth: StateHealth
    let ledger: Ledger
    /// Lets the next request to a destination read its secret again.
    let renewSecret: @Sendable (String) -> Void

    /// - Parameter permit: Pays for the question; its account is closed at the end.
    /// - Returns: No space when the destination reports none, or cannot be queried: then it is not queried for a while,
    ///   and uploads are tried as if there were space.
    func run(
        _ destination: any Destination, _ name: String, _ permit: TransferPermit
    ) async -> (space: RemoteSpace?, error: UploadError?) {
        let answer = await space(of: destination, name, RequestContext(permit: permit, headers: [:]))
        await close(permit)
        return answer
    }

    private func space(
        of destination: any Destination, _ name: String, _ context: RequestContext
    ) async -> (RemoteSpace?, UploadError?) {
        do { return (try await destination.space(context: context), nil) } catch {
            if error.remedy.mayConcernSecret { renewSecret(name) }
            log.debug(
                "cannot read the free space of a destination", ["destination": name, "reason": error.failure.message])
            return (nil, error)
        }
    }

    private func close(_ permit: TransferPermit) async {
        guard let account = permit.account else { return }
        do { try await ledger.close(account) } catch let error as StoreError { stateHealth.failed(error) } catch {
            log.debug("cannot record the cost of a request", ["reason": "\(error)"])
        }
    }
}
