internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Facts about destinations that a run learns and stores for later runs: their speed, the request size that they
/// accept, and whether they refuse `Expect`. A state that cannot be written loses them, and no upload.
actor LearnedFacts {
    private let context: Context
    private let live: LiveUploads
    private let stateHealth: StateHealth
    private let transport: Transport
    private var stored = StoredFacts()

    init(context: Context, live: LiveUploads, stateHealth: StateHealth, transport: Transport) {
        (self.context, self.live, self.stateHealth) = (context, live, stateHealth)
        self.transport = transport
    }

    /// Gives a destination the stored facts about its requests, before the first transfer to it in its present
    /// configuration.
    ///
    /// - Parameter generation: The generation of the destination's settings.
    func recall(_ name: String, generation: Int) async {
        await recallOriginsWithoutExpect()
        await recallRequestSize(of: name, generation: generation)
    }

    private func recallOriginsWithoutExpect() async {
        guard !stored.knowsOriginsWithoutExpect else { return }
        var known: [String: WallTime] = [:]
        do { known = try await context.store.read { try $0.settings.originsWithoutExpect() } } catch {
            context.log.debug("cannot read the servers that refuse Expect", ["reason": "\(error)"])
        }
        transport.recall(originsWithoutExpect: stored.recall(originsWithoutExpect: known, at: context.clocks.wall()))
    }

    /// Stores the servers that have refused `Expect` in this run.
    func storeOriginsWithoutExpect() async {
        guard let all = stored.learn(transport.originsWithoutExpect, at: context.clocks.wall()) else { return }
        do { try await context.store.write { try $0.settings.store(originsWithoutExpect: all) } } catch let error
            as StoreError
        {
            stateHealth.failed(error)
        } catch {
            context.log.debug("cannot record the servers that refuse Expect", ["reason": "\(error)"])
        }
    }

    /// Stores the speed to a destination for the plans of a later run.
    func storeSpeed(to name: String) async {
        guard let speed = live.speed(to: name),
            stored.shouldStore(speed: speed, of: name, at: context.clocks.monotonic())
        else { return }
        do { try await context.store.write { try $0.settings.store(speed: speed, to: name) } } catch let error
            as StoreError
        {
            stateHealth.failed(error)
        } catch {
            context.log.debug("cannot record the speed of a destination", ["destination": name, "reason": "\(error)"])
        }
    }

    private func recallRequestSize(of name: String, generation: Int) async {
        guard let destination = context.destinations[name],
            !stored.knowsRequestSize(of: name, generation: generation)
        else { return }
        let known = await requestSize(of: name, destination)
        if let known, destination.requestSize == nil { destination.recall(known) }
        stored.set(requestSize: known, of: name, generation: generation)
    }

    /// Stores the size of requests that a destination has learned, over restarts.
    func storeRequestSize(of name: String) async {
        guard let destination = context.destinations[name], let place = destination.requestSizePlace else { return }
        let size = destination.requestSize
        guard stored.shouldStore(requestSize: size, of: name) else { return }
        do {
            try await context.store.write { try $0.settings.store(requestSize: size, to: name, at: place) }
        } catch let error as StoreError {
            stateHealth.failed(error)
        } catch {
            context.log.debug("cannot record the request size", ["destination": name, "reason": "\(error)"])
        }
    }

    private func requestSize(of name: String, _ destination: any Destination) async -> RequestSize? {
        guard let place = destination.requestSizePlace else { return nil }
        do { return try await context.store.read { try $0.settings.requestSize(to: name, at: place) } } catch {
            context.log.debug("cannot read the recorded request size", ["destination": name, "reason": "\(error)"])
            return nil
        }
    }
}

/// The speed and the request size of each destination, and the servers that refuse `Expect`, as they are stored, to find
/// out what is to be stored again.
struct StoredFacts: Sendable {
    /// In bytes a second.
    private var speeds: [String: (speed: Int64, at: MonotonicTime)] = [:]
    /// The bytes in one request, and the generation of the destination's settings in which that was read.
    private var requestSizes: [String: (generation: Int, size: RequestSize?)] = [:]

    /// Servers that refuse `Expect`, with the time of the refusal; `nil` before they were read.
    private var originsWithoutExpect: [String: WallTime]?

    /// After this long a server is asked again: it, or a proxy before it, may have been replaced.
    private static let lifetimeOfRefusal = Duration.seconds(30 * 86_400)

    var knowsOriginsWithoutExpect: Bool { originsWithoutExpect != nil }

    /// Records the stored servers that refuse `Expect`.
    ///
    /// - Returns: Those that need not be asked again yet.
    mutating func recall(originsWithoutExpect all: [String: WallTime], at now: WallTime) -> Set<String> {
        let fresh = all.filter { $0.value <= now && now < $0.value.advanced(by: Self.lifetimeOfRefusal) }
        originsWithoutExpect = fresh
        return Set(fresh.keys)
    }

    /// - Returns: What is to be stored, where servers have refused `Expect` that were not known; otherwise `nil`.
    mutating func learn(_ origins: Set<String>, at now: WallTime) -> [String: WallTime]? {
        guard let known = originsWithoutExpect, !origins.isSubset(of: known.keys) else { return nil }
        let all = Dictionary(origins.map { ($0, known[$0] ?? now) }) { $1 }
        originsWithoutExpect = all
        return all
    }

    /// - Returns: Whether the speed in bytes a second is to be stored now: at most once a minute, and where it changed.
    mutating func shouldStore(speed: Int64, of name: String, at now: MonotonicTime) -> Bool {
        if let stored = speeds[name] {
            guard now.since(stored.at) > .seconds(60), abs(stored.speed - speed) > stored.speed / 10 else {
                return false
            }
        }
        speeds[name] = (speed, now)
        return true
    }

    /// Whether the stored size of requests was read for this generation.
    func knowsRequestSize(of name: String, generation: Int) -> Bool {
        requestSizes[name].map { $0.generation == generation } ?? false
    }

    /// Records the stored size of requests, as read in a generation.
    mutating func set(requestSize: RequestSize?, of name: String, generation: Int) {
        requestSizes[name] = (generation, requestSize)
    }

    /// - Returns: Whether a size that a destination has learned is to be stored: it differs from the stored one.
    mutating func shouldStore(requestSize: RequestSize?, of name: String) -> Bool {
        guard let known = requestSizes[name], known.size != requestSize else { return false }
        requestSizes[name]?.size = requestSize
        return true
    }
}

extension Destination {
    /// The server that a learned size of requests belongs to; `nil` for a folder, and for what is no destination.
    var requestSizePlace: String? {
        switch site {
        case .here: "here"
        case .server(let host, let port, _): "\(host):\(port)"
        case .addresses(let addresses, let port): addresses.first.map { "\($0):\(port)" }
        case .folder, .anywhere: nil
        }
    }
}
