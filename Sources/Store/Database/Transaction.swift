internal import Core

/// Access to the database for the length of one closure of ``Store/read(_:)`` or ``Store/write(_:)``.
///
/// Each table is a value over a transaction: `tx.uploads.find(id)`. Functions that change rows exist only for a
/// ``WriteTransaction``: the signature says that a function needs one.
package struct Transaction<Access> {
    let connection: Connection
    let session: Session

    var clocks: any Clocks { session.clocks }
}

/// Access of a transaction that sees committed data, and cannot change it.
package enum Reading {}

/// Access of a transaction that changes data. It sees its own changes.
package enum Writing {}

package typealias ReadTransaction = Transaction<Reading>
package typealias WriteTransaction = Transaction<Writing>
