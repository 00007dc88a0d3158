/// First in, first out.
struct Queue<Element> {
    private var elements: [Element] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }

    mutating func append(_ element: Element) { elements.append(element) }

    var last: Element? { isEmpty ? nil : elements.last }

    mutating func removeLast() { elements.removeLast() }

    mutating func removeAll(where isMeant: (Element) -> Bool) {
        elements = elements[head...].filter { !isMeant($0) }
        head = 0
    }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        defer {
            head += 1
            if head > 1024 && head * 2 > elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }
}
