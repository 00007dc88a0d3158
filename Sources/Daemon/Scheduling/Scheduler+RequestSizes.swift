internal import Core
internal import Linux
internal import Store

// Request sizes that destinations have learned, kept over restarts.

extension Scheduler {
    /// Gives a destination the stored request size, before the first transfer to it in its present configuration.
    func recallRequestSize(of name: String) async {
        let change = changes[name, default: 0]
        guard let destination = house.destinations[name], requestSizes[name]?.change != change else { return }
        var known: RequestSize?
        do {
            if let place = Self.place(of: destination) {
                known = try await house.store.requestSize(to: name, at: place)
            }
        } catch {
            house.log.debug("the size of requests is not known", ["destination": name, "reason": "\(error)"])
        }
        if let known, destination.requestSize == nil { destination.recall(known) }
        requestSizes[name] = (change, known)
    }

    func keepRequestSize(of name: String) async {
        guard let destination = house.destinations[name], let kept = requestSizes[name],
            let place = Self.place(of: destination), destination.requestSize != kept.size
        else { return }
        let size = destination.requestSize
        requestSizes[name]?.size = size
        do { try await house.store.keep(requestSize: size, to: name, at: place) } catch let error as StoreError {
            house.stateFailed(error)
        } catch {
            house.log.debug("the size of requests is not kept", ["destination": name, "reason": "\(error)"])
        }
    }

    /// The server that a learned size belongs to.
    private static func place(of destination: any Destination) -> String? {
        switch destination.site {
        case .here: "here"
        case .server(let host, let port): "\(host):\(port)"
        case .folder: nil
        }
    }
}
