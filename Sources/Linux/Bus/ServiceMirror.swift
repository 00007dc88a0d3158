internal import Core

/// A question to a service: the properties of an object, in one answer.
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

/// The result of a question. A vanished object, a service that hangs and an invalid answer are treated alike: nothing
/// is known, and nothing else fails.
enum BusReply: Hashable, Sendable {
    case value(BusValue)
    /// Contains the reason for a person.
    case refused(String)
}

/// A service that can be mirrored: the questions for it, and the relevant signals.
struct BusService: Sendable {
    typealias Answers = [BusQuestion: BusReply]

    /// Its well-known name.
    let name: String
    /// Sent first, and always.
    let root: BusQuestion
    /// Match rules without type and sender. They are narrow, since each matching signal wakes this process.
    let matchRules: [String]
    /// Further questions, by the answers so far.
    let questions: @Sendable (Answers) -> [BusQuestion]
    /// Whether a signal about one object concerns all others.
    let isOneWhole: Bool
    /// The interfaces and properties that are read; other parts of an answer are dropped.
    let names: Set<String>
}

/// The state of a service. It is kept up to date by asking again for the object of every signal.
///
/// The values in signals are ignored: a property may come without its value, and an answer is never older than the
/// signal before it, since the bus keeps their order. Values in, values out; the owner sends and waits.
struct ServiceMirror {
    let service: BusService
    /// The connection that owns the name: messages of other senders are ignored.
    private(set) var owner: String?
    /// Whether it is known by now if the service exists, and if so, its complete state.
    private(set) var isKnown = false
    private(set) var answers: BusService.Answers = [:]
    private var pendingQuestions: Set<BusQuestion> = []
    /// Queries that were sent before a change, and must be repeated.
    private var staleQuestions: Set<BusQuestion> = []

    /// Limit of objects; no service has as many.
    private static let maxObjects = 4000

    init(_ service: BusService) { self.service = service }

    /// Forgets everything, also whether the service exists: the bus has gone.
    mutating func forget() { self = ServiceMirror(service) }

    /// The name has another owner now; `nil` for none.
    mutating func change(owner: String?) {
        forget()
        self.owner = owner
        isKnown = owner == nil
    }

    /// Handles a signal of the service.
    mutating func invalidate(about path: String) {
        if service.isOneWhole { return invalidateAll() }
        for question in answers.keys where question.path == path { staleQuestions.insert(question) }
        for question in pendingQuestions where question.path == path { staleQuestions.insert(question) }
    }

    /// Repeats all queries.
    mutating func invalidateAll() {
        staleQuestions.formUnion(answers.keys)
        staleQuestions.formUnion(pendingQuestions)
    }

    /// The queries to send now; called after each change. Each is sent once, until it is answered.
    mutating func nextQuestions() -> [BusQuestion] {
        guard owner != nil else { return [] }
        let wanted = Set(([service.root] + service.questions(answers)).prefix(Self.maxObjects))
        // A repeated query keeps its old answer until the new one comes, so that reports continue under
        // very many signals.
        isKnown = wanted.allSatisfy { answers[$0] != nil }
        // Removes answers that are not needed any more, since the object that led to them is gone.
        answers = answers.filter { wanted.contains($0.key) }
        staleQuestions.formIntersection(wanted)
        let questions = wanted.filter {
            !pendingQuestions.contains($0) && (answers[$0] == nil || staleQuestions.contains($0))
        }
        staleQuestions.subtract(questions)
        pendingQuestions.formUnion(questions)
        return Array(questions)
    }

    mutating func apply(_ answer: BusReply, to question: BusQuestion) {
        pendingQuestions.remove(question)
        if case .value(let value) = answer {
            answers[question] = .value(value.keeping(service.names))
        } else {
            answers[question] = answer
        }
    }

    /// Why the service does not answer, for a person.
    var trouble: String? {
        if case .refused(let reason) = answers[service.root] { reason } else { nil }
    }
}

extension BusService.Answers {
    /// The properties of an object by their names; empty when they are not known.
    func properties(_ path: String, _ interface: String) -> [String: BusValue] {
        guard case .value(let value) = self[BusQuestion(path: path, interface: interface)] else { return [:] }
        return value.byName ?? [:]
    }
}
