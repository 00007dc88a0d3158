internal import Core
internal import Destinations
internal import Linux
internal import Store

/// Facts about destinations that a run learns and stores for later runs: their speed, and the request size that they
/// accept. A state that cannot be written loses them, and no upload.
struct LearnedFacts {
    let store: Store
    let log: Log
    let stateHealth: StateHealth

    /// - Parameter speed: In bytes a second.
    func store(speed: Int64, of destination: String) async {
        do { try await store.write { try $0.settings.store(speed: speed, to: destination) } } catch let error
            as StoreError
        {
            stateHealth.failed(error)
        } catch {
            log.debug(
                "cannot record the speed of a destination", ["destination": destination, "reason": "\(error)"])
        }
    }

    func requestSize(of name: String, _ destination: any Destination) async -> RequestSize? {
        guard let place = destination.requestSizePlace else { return nil }
        do { return try await store.read { try $0.settings.requestSize(to: name, at: place) } } catch {
            log.debug("cannot read the recorded request size", ["destination": name, "reason": "\(error)"])
            return nil
        }
    }

    func store(requestSize: RequestSize?, of name: String, _ destination: any Destination) async {
        guard let place = destination.requestSizePlace else { return }
        do {
            try await store.write { try $0.settings.store(requestSize: requestSize, to: name, at: place) }
        } catch let error as StoreError {
            stateHealth.failed(error)
        } catch {
            log.debug("cannot record the request size", ["destination": name, "reason": "\(error)"])
        }
    }
}

extension Destination {
    /// The server that a learned size of requests belongs to; `nil` for a folder.
    var requestSizePlace: String? {
        switch site {
        case .here: "here"
        case .server(let host, let port): "\(host):\(port)"
        case .folder: nil
        }
    }
}
