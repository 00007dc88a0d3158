package import Core

package struct EventRecord: Sendable, Hashable {
    package var seq: Int64
    package var at: WallTime
    package var type: EventType
    package var upload: String?
    package var detail: [String: String]
}
