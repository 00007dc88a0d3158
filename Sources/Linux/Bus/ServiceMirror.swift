internal import Core

/// What is asked of a service: the properties of an object, in one answer.
struct BusQuestion: Hashable, Sendable {
    let path: String
    /// `nil` for all objects below the path, with all their interfaces.
    let interface: String?

    func call(to owner: String) -> BusMessage.Call {
        guard let interface else {
            return .init(
                destination: owner, path: path, interface: "org.freedesktop.DBus.ObjectManager",
                member: "GetManagedObjects")
        }
        return .init(
            destination: owner, path: path, interface: "org.freedesktop.DBus.Properties", member: "GetAll",
            arguments: [interface])
    }
}

/// What came of a question. An object that went meanwhile, a service that hangs and one that talks nonsense are all the same here:
/// nothing is known, and nothing else fails.
enum BusAnswer: Hashable, Sendable {
    case value(BusValue)
    /// In words for a person.
    case refused(String)
}

/// A service that can be mirrored: what there is to ask, and which news matter.
struct BusService: Sendable {
    typealias Known = [BusQuestion: BusAnswer]

    /// Its well-known name.
    let name: String
    /// Asked first, and always.
    let root: BusQuestion
    /// Match rules without type and sender, narrow: each signal that passes them wakes this process.
    let news: [String]
    /// What else to ask, by what is known so far.
    let questions: @Sendable (Known) -> [BusQuestion]
    /// Whether news about one object concern all others.
    let isOneWhole: Bool
    /// The interfaces and properties that are read; what else an answer has is not kept.
    let names: Set<String>
}

/// The state of a service, kept as it is by asking again whatever a signal is about.
///
/// The values in signals are not looked at: a property may come without its value, and an answer is never older than
/// the signal before it, since the bus keeps their order. Values in, values out; who owns it sends and waits.
struct ServiceMirror {
    let service: BusService
    /// The connection that has the name: what others send is not its word.
    private(set) var owner: String?
    /// Whether it is known by now if the service is there, and if so, all that is to be known of it.
    private(set) var isKnown = false
    private(set) var known: BusService.Known = [:]
    private var asking: Set<BusQuestion> = []
    /// Asked before something changed, and to be asked again.
    private var again: Set<BusQuestion> = []

    /// Nobody has so much to say.
    private static let most = 4000

    init(_ service: BusService) { self.service = service }

    /// Nothing is known any more, not even if the service is there: the bus has gone.
    mutating func forget() { self = ServiceMirror(service) }

    /// Somebody else has the name now; nobody for `nil`.
    mutating func change(owner: String?) {
        forget()
        self.owner = owner
        isKnown = owner == nil
    }

    /// A signal of the service came.
    mutating func hear(about path: String) {
        if service.isOneWhole { return askAll() }
        for question in known.keys where question.path == path { again.insert(question) }
        for question in asking where question.path == path { again.insert(question) }
    }

    /// Everything is asked anew.
    mutating func askAll() {
        again.formUnion(known.keys)
        again.formUnion(asking)
    }

    /// What to ask now, and to be called after each change. Each is asked once, until it is answered.
    mutating func takeQuestions() -> [BusQuestion] {
        guard owner != nil else { return [] }
        let wanted = Set(([service.root] + service.questions(known)).prefix(Self.most))
        // What is asked again has an answer until the next comes: under a hail of signals news still get out.
        isKnown = wanted.allSatisfy { known[$0] != nil }
        // What nobody wants to know any more, since the object that led there is gone.
        known = known.filter { wanted.contains($0.key) }
        again.formIntersection(wanted)
        let questions = wanted.filter { !asking.contains($0) && (known[$0] == nil || again.contains($0)) }
        again.subtract(questions)
        asking.formUnion(questions)
        return Array(questions)
    }

    mutating func take(_ answer: BusAnswer, to question: BusQuestion) {
        asking.remove(question)
        if case .value(let value) = answer {
            known[question] = .value(value.keeping(service.names))
        } else {
            known[question] = answer
        }
    }

    /// Why it does not answer, for a person.
    var trouble: String? {
        if case .refused(let reason) = known[service.root] { reason } else { nil }
    }
}

extension BusService.Known {
    /// The properties of an object by their names; empty when they are not known.
    func properties(_ path: String, _ interface: String) -> [String: BusValue] {
        guard case .value(let value) = self[BusQuestion(path: path, interface: interface)] else { return [:] }
        return value.byName ?? [:]
    }
}
