/// A text that no log, error or debugger line may show. ``reveal()`` is the only access to it.
package struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The secret itself: only for the header or signature that needs it.
    package func reveal() -> String { text }

    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
