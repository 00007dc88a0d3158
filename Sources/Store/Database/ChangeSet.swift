/// The work that a transaction has made waiting. The commit wakes those who wait for it: no caller has to know whom a
/// change concerns.
package struct ChangeSet: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Files were recorded.
    package static let arrivals = ChangeSet(rawValue: 1 << 0)
    /// Other assets than before wait to be copied.
    package static let copies = ChangeSet(rawValue: 1 << 1)
    /// An upload may be sent that could not be sent before.
    package static let queued = ChangeSet(rawValue: 1 << 2)
    /// An asset is due for its release.
    package static let due = ChangeSet(rawValue: 1 << 3)
    /// A release is over, or a staged copy is gone.
    package static let released = ChangeSet(rawValue: 1 << 4)
    /// Objects at a destination are to be removed.
    package static let leftovers = ChangeSet(rawValue: 1 << 5)
    /// An upload has entered or left a list, or may leave one.
    package static let lists = ChangeSet(rawValue: 1 << 6)
    /// A source has changed, and has to settle again.
    package static let unsettled = ChangeSet(rawValue: 1 << 7)
    /// Uploads that are being sent have ended, because a newer version of their source was recorded, or read a staged
    /// copy that is to be made again.
    package static let superseded = ChangeSet(rawValue: 1 << 8)
    /// Events were stored, for readers and hooks.
    package static let events = ChangeSet(rawValue: 1 << 9)
    /// It was recorded why a source cannot be released yet.
    package static let releaseNotes = ChangeSet(rawValue: 1 << 10)
}
