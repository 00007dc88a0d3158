/// First in, first out.
package struct FIFO<Element> {
    /// An element that was taken is released at once, before its place is.
    private var elements: [Element?] = []
    private var first = 0

    package init() {}

    package var count: Int { elements.count - first }
    package var isEmpty: Bool { count == 0 }
    package var last: Element? { elements.last ?? nil }

    package mutating func append(_ element: Element) { elements.append(element) }

    package mutating func popFirst() -> Element? {
        guard first < elements.count else { return nil }
        let element = elements[first]
        elements[first] = nil
        first += 1
        // Moving the rest costs as much as was taken since the last time.
        if first == elements.count || first > 64 && first > elements.count / 2 {
            elements.removeFirst(first)
            first = 0
        }
        return element
    }

    package mutating func removeLast() { if !isEmpty { elements.removeLast() } }

    package mutating func removeAll(where isMeant: (Element) -> Bool) {
        elements = elements[first...].filter { $0.map { !isMeant($0) } ?? false }
        first = 0
    }
}

extension FIFO: Sendable where Element: Sendable {}
