/// Words in the columns of a row that this program does not know: a newer one has written them. The program decides by a cautious
/// substitute, shows the words as they are, and leaves them in the database.
package struct UnknownValues: Sendable, Hashable {
    package var state: String?
    package var settledBy: String?
    package var action: String?
    package var sourceState: String?
    package var stagingMode: String?

    package init() {}
}
